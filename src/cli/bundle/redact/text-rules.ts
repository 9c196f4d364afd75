import { isSecretName } from "./secret-names.ts";

// How secrets look in free text: log lines, messages of Kubernetes Events, values of fields. Every repetition has a bound or
// consumes distinct characters, so that no text takes more than linear time.

/** What was removed, as the index of the bundle counts it. */
export type SecretKind =
  | "private key"
  | "authorization header"
  | "user and password in a URL"
  | "named secret"
  | "secret of a flag"
  | "password in a sentence"
  | "token of a known form"
  | "password hash"
  | "encoded user and password"
  | "long random text"
  | "environment variable"
  | "annotation of another project"
  | "managedFields"
  | "last applied configuration"
  | "data of a Secret"
  | "known secret";

export interface TextRule {
  kind: SecretKind;
  pattern: RegExp;
  /** What replaces the match. @param mark replaces the secret. */
  replace: (mark: string, groups: readonly string[]) => string;
}

const NAMES =
  "pass(?:word|wort|wd|phrase|code)s?|secrets?|tokens?|api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|kg[-_]?key|" +
  "key-data|certificate-data|authority-data|credentials?|dockerconfigjson|dockercfg|user-?data|session[-_]?id|signature|" +
  "(?<![A-Za-z])(?:pass|pwd|pw|auth|sig|community|kg)";
/** A name, the quote that ends it, and what separates name and value. */
const NAMED = `(?:${NAMES})(?:[-_]?(?:data|value|base64|b64|hash|\\d{1,3}))?\\\\{0,7}["']?[ \\t]{0,8}(?:=>|:=|[:=：])[ \\t]{0,8}`;
const KNOWN_TOKENS = [
  "eyJ[\\w-]{8,}\\.[\\w-]{4,}(?:\\.[\\w-]*)?",
  "gh[opsur]_\\w{16,}",
  "github_pat_\\w{16,}",
  "glpat-[\\w-]{16,}",
  "xox[abeoprs]-[\\w-]{10,}",
  "hv[bs]\\.[\\w-]{16,}",
  "npm_\\w{30,}",
  "dckr_pat_[\\w-]{16,}",
  "AIza[\\w-]{30,}",
  "(?:AKIA|ASIA)[A-Z0-9]{16}",
  "sk-[\\w-]{20,}",
  "AGE-SECRET-KEY-1[A-Z0-9]{20,}",
  "[a-z0-9]{6}\\.[a-z0-9]{16}",
].join("|");

export const TEXT_RULES: readonly TextRule[] = [
  {
    kind: "private key",
    pattern:
      /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]{0,20000}(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?/gu,
    replace: (mark) => mark,
  },
  {
    kind: "authorization header",
    pattern:
      /\b((?:proxy-)?authorization|(?:set-)?cookie|x-auth-token)(\\{0,7}["']?\s{0,8}[:=]\s{0,8}\\{0,7}["']?)[^\r\n"'\\]+/giu,
    replace: (mark, [name = "", between = ""]) => name + between + mark,
  },
  {
    kind: "authorization header",
    pattern: /\b([Bb]earer|BEARER|[Nn]egotiate)(\s+)[^\s"',;\\]{6,}/gu,
    replace: (mark, [scheme = "", blank = ""]) => scheme + blank + mark,
  },
  {
    kind: "authorization header",
    pattern: /\b([Bb]asic|BASIC|[Dd]igest)(\s+)(?=[a-z+/-]*[A-Z0-9=])[A-Za-z0-9+/=_-]{6,}/gu,
    replace: (mark, [scheme = "", blank = ""]) => scheme + blank + mark,
  },
  {
    kind: "user and password in a URL",
    pattern: /:\/\/[^\s"'<>]{1,2000}@(?=[\w[.%-])/gu,
    replace: (mark) => `://${mark}@`,
  },
  {
    kind: "user and password in a URL",
    pattern: /(?<![\w/.:%+-])([\w.%+-]{1,64}:)[^\s/@:"']{1,200}@(?!sha256:)(?=[\w[.-])/gu,
    replace: (mark, [user = ""]) => `${user}${mark}@`,
  },
  {
    kind: "named secret",
    // A line of YAML: the value is the rest of the line, or the block below it.
    pattern: new RegExp(
      `^([ \\t-]{0,64}["']?[\\w.-]{0,64}?(?:${NAMES})["']?:[ \\t]+)(?:[|>][+-]?[ \\t]*\\n(?:[ \\t]+[^\\n]*\\n?)+|[^\\n{["']+$)`,
      "gimu",
    ),
    replace: (mark, [name = ""]) => name + mark,
  },
  {
    kind: "named secret",
    pattern: new RegExp(
      `(${NAMED})(?:\\\\{0,7}"[^\\n]{0,4000}?\\\\{0,7}"(?=\\s*(?:[,}\\]);:]|$)|\\s)|\\\\{0,7}'[^'\\n]{0,4000}'|[^\\s&]+)`,
      "giu",
    ),
    replace: (mark, [name = ""]) => name + mark,
  },
  {
    kind: "named secret",
    // The value stands alone on the next line. A field of YAML, which ends in a colon or has a value, does not.
    pattern:
      /(\b(?:pass(?:word|wort|wd|phrase|code)|pwd|pw|secret|token)["']?[ \t]{0,8}[:=]>?[ \t]{0,8}\r?\n[ \t]{0,64})[^\s[]\S{0,511}(?<!:)(?=[ \t]{0,8}(?:[\r\n]|$))/giu,
    replace: (mark, [before = ""]) => before + mark,
  },
  {
    kind: "secret of a flag",
    pattern:
      /(--?[\w-]{0,40}(?:password|passwd|passphrase|token|secret|api-key|credentials?)[ =]+)("[^"]*"|'[^']*'|\S+)/giu,
    replace: (mark, [flag = ""]) => flag + mark,
  },
  {
    kind: "password in a sentence",
    pattern: /(\bpass(?:word|wort|wd|phrase)\s{1,4}(?:is\s{1,4}|was\s{1,4})?)(?=\S{0,200}[\d!@#$%^&*])\S{1,200}/giu,
    replace: (mark, [before = ""]) => before + mark,
  },
  {
    kind: "token of a known form",
    pattern: new RegExp(`(?<![\\w.])(?:${KNOWN_TOKENS})(?![\\w])`, "gu"),
    replace: (mark) => mark,
  },
  {
    kind: "password hash",
    pattern: /\$(?:1|2[abxy]?|5|6|7|y|gy|apr1|argon2\w{0,3})\$[^\s"',]{8,}/gu,
    replace: (mark) => mark,
  },
];

/** Programs that take passwords by flags of one letter, each to the next program or to the end of its line. */
const TOOLS = /\b(?:ipmitool|ipmipower|ipmi-\w{1,20}|ipmiutil|sshpass|racadm|fence_\w{1,30})\b[^\n]*/gu;
const SHORT_FLAG = /(\s-(?:P|p|u|k|y)\s{0,4})("[^"]*"|'[^']*'|[^\s"']+)/gu;
/** Here `-k` has no value, and other flags without one may stand before `-u`, as in `-sku`. */
const WEB_TOOLS = /\b(?:curl|wget)\b[^\n]*/gu;
const USER_FLAG =
  /(\s(?:-[#0-9fgiIkLnNsSv]{0,8}[uU]\s{0,4}|--(?:proxy-)?user[\s=]{1,4}))("[^"]*"|'[^']*'|[^\s"'-][^\s"']*)/gu;

/** Replaces what follows `-P`, `-u` and similar flags of tools for BMCs. */
export function withoutShortFlags(text: string, mark: () => string): string {
  const hide = (_all: string, flag: string): string => flag + mark();
  return text
    .replaceAll(WEB_TOOLS, (command) => command.replaceAll(USER_FLAG, hide))
    .replaceAll(TOOLS, (command) => command.replaceAll(SHORT_FLAG, hide));
}

/** Whether `flag`, an entry of a list of arguments, has the next entry as its value, and that is a secret. */
export function isSecretArgument(flag: string, next: string): boolean {
  if (/^-[#0-9fgiIkLnNsSv]{0,8}[uU]$|^--(?:proxy-)?user$/u.test(flag)) return next.includes(":");
  return /^-[Pp]$/u.test(flag) || (/^--?[\w-]{2,60}$/u.test(flag) && isSecretName(flag.replace(/^-+/u, "")));
}

/** Runs of the characters of base64, hex and most random tokens, that are not part of a path or of a host name. */
export const RANDOM_RUN = /(?<![A-Za-z0-9+/_.-])[A-Za-z0-9+_-][A-Za-z0-9+/_-]{10,}={0,2}/gu;

/** What kind of secret a run is; undefined for a name, a path, a UUID or a digest. */
export function hiddenIn(run: string): "encoded user and password" | "long random text" | undefined {
  if (!/[A-Z]/u.test(run) || !/[a-z]/u.test(run)) return undefined;
  const plain = Buffer.from(run, "base64").toString("latin1");
  if (/^[\x20-\x7e\s]+$/u.test(plain) && /^[^\s:]+:\S|pass(?:word|wd)|PRIVATE KEY|token/iu.test(plain)) {
    return "encoded user and password";
  }
  return run.length >= 40 && /[0-9]/u.test(run) && isRandom(run) ? "long random text" : undefined;
}

/** Random text changes between small letters, capitals, digits and signs more often than names and paths do. */
const CHANGES_MIN = 0.45;

function isRandom(run: string): boolean {
  let changes = 0;
  for (let index = 1; index < run.length; index += 1) {
    if (classOf(run.charCodeAt(index)) !== classOf(run.charCodeAt(index - 1))) changes += 1;
  }
  return changes / (run.length - 1) >= CHANGES_MIN;
}

function classOf(code: number): number {
  if (code >= 97 && code <= 122) return 0;
  if (code >= 65 && code <= 90) return 1;
  return code >= 48 && code <= 57 ? 2 : 3;
}
