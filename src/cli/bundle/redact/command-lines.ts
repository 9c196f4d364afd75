import { MARK_RANGE, markOf } from "./marks.ts";
import { isSecretName } from "./secret-names.ts";

// Passwords in command lines and lists of arguments.

/** What separates two arguments: a blank, or quotes and a comma in a list that a program has printed. */
const BETWEEN = String.raw`(?:\\{0,7}["'])?(?:[ \t]{1,4}|[ \t]{0,4},[ \t]{0,4})(?:\\{0,7}["'])?`;
const VALUE = String.raw`(?:(?<=["'])[^"'\n\\${MARK_RANGE}]{1,1000}|"[^"\n]{0,1000}"|'[^'\n]{0,1000}'|[^\s"',${MARK_RANGE}]{1,1000})`;
const LONG_FLAG = new RegExp(
  `(--?[\\w-]{0,40}(?:password|passwd|passphrase|token|secret|api-key|certificate-key|auth|credentials?)(?:=|${BETWEEN}))${VALUE}`,
  "giu",
);

/** Programs that take passwords by flags of one letter. */
const TOOL =
  "ipmitool|ipmipower|ipmi-\\w{1,20}|ipmiutil|sshpass|racadm|wsman|redfishtool|ilorest|hponcfg|mysql\\w{0,10}|mariadb\\w{0,10}|(?:docker|podman|buildah|skopeo|nerdctl|helm(?:\\s{1,4}registry)?)\\s{1,4}login|fence_\\w{1,30}";
const TOOLS = new RegExp(`(?<![\\w-])(?:${TOOL})\\b[^\\n]*`, "gu");
const IS_TOOL = new RegExp(`^(?:\\S{0,200}/)?(?:${TOOL})$`, "u");
const SHORT_FLAG = new RegExp(`([\\s"'\\[]-(?:P|p|u|k|y)(?:${BETWEEN})?)(?!-)${VALUE}`, "gu");
const SNMP_TOOLS = /(?<![\w-])snmp[a-z]{2,12}\b[^\n]*/gu;
const IS_SNMP_TOOL = /^(?:\S{0,200}\/)?snmp[a-z]{2,12}$/u;
const SNMP_FLAG = new RegExp(`([\\s"'\\[]-(?:c|A|X|Ca)(?:${BETWEEN})?)(?!-)${VALUE}`, "gu");
const LOGIN_TOOLS = /(?<![\w-])(?:redis-cli|ldap[a-z]{3,10}|x?freerdp\d?|smb[a-z]{3,10}|net)\b[^\n]*/gu;
const LOGIN_TOOL_FLAG = new RegExp(`(\\s(?:-[aw]\\s{0,4}|/p:|-U\\s{0,4}[^\\s%]{1,64}%))(?!-)${VALUE}`, "gu");
/** In these tools, `-k` has no value, and flags without a value may come before `-u`, as in `-sku`. */
const WEB_TOOLS = /(?<![\w-])(?:curl|wget|https?)\s[^\n]*/gu;
const USER_FLAG = new RegExp(
  `(\\s(?:-[#0-9fgiIkLnNsSv]{0,8}[uUab]\\s{0,4}|--(?:(?:proxy-)?user|auth|cookie)[\\s=]{1,4}))(?:"[^"]*"|'[^']*'|[^\\s"'${MARK_RANGE}-][^\\s"']*)`,
  "gu",
);

/** Replaces what follows `--password`, `-P`, `-u` and similar flags in one line of text. */
export function markArguments(line: string): string {
  const mark = markOf("secret of a flag");
  const hide = (_all: string, flag: string): string => flag + mark;
  return line
    .replaceAll(WEB_TOOLS, (command) => command.replaceAll(USER_FLAG, hide))
    .replaceAll(TOOLS, (command) => command.replaceAll(SHORT_FLAG, hide))
    .replaceAll(SNMP_TOOLS, (command) => command.replaceAll(SNMP_FLAG, hide))
    .replaceAll(LOGIN_TOOLS, (command) => command.replaceAll(LOGIN_TOOL_FLAG, hide))
    .replaceAll(LONG_FLAG, hide);
}

const HEADER = /^(?:(?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]*(?:token|api-?key|auth|csrf|session)[\w-]*)$/iu;
const LOGIN_FLAG = /^(?:-[#0-9fgiIkLnNsSv]{0,8}[uU]|--(?:proxy-)?user)$/u;

/** Which part of an item of a list is a secret: what follows the first `keeps` characters. Undefined if no part is. */
export function secretInList(items: readonly unknown[], index: number): { keeps: number } | undefined {
  const item = items[index];
  if (typeof item !== "string") return undefined;
  const before = items[index - 1];
  if (typeof before === "string" && isFollowedBySecret(before, item, items)) return { keeps: 0 };
  const joined = /^(?:-[#0-9fgiIkLnNsSv]{0,8}[uU]|--(?:proxy-)?user=)(?=[^\s:]{0,200}:\S)/u.exec(item);
  if (joined !== null) return { keeps: joined[0].length };
  const short = /^-[Ppky](?=[^\s-])/u.exec(item);
  return short !== null && names(items, IS_TOOL) ? { keeps: short[0].length } : undefined;
}

function isFollowedBySecret(before: string, item: string, items: readonly unknown[]): boolean {
  if (LOGIN_FLAG.test(before)) return item.includes(":");
  if (HEADER.test(before)) return !HEADER.test(item);
  if (/^-[Pp]$/u.test(before)) return true;
  if (/^-[ky]$/u.test(before)) return names(items, IS_TOOL);
  if (/^-(?:c|A|X)$/u.test(before)) return names(items, IS_SNMP_TOOL);
  return /^--?[\w-]{2,60}$/u.test(before) && isSecretName(before.replace(/^-+/u, ""));
}

function names(items: readonly unknown[], tool: RegExp): boolean {
  return items.some((item) => typeof item === "string" && tool.test(item));
}
