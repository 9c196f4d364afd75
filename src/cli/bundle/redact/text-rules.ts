import type { SecretKind } from "./marks.ts";
import { MARK_RANGE, markOf } from "./marks.ts";

// How secrets look in one line of free text: log lines, messages of Kubernetes Events, values of fields. Every
// repetition has a bound or consumes distinct characters, so that no text takes more than linear time. hidden-lines.ts
// has secrets on lines of their own.

interface TextRule {
  kind: SecretKind;
  pattern: RegExp;
  /** Returns the text that replaces the match. @param mark replaces the secret. */
  replace?: (mark: string, groups: readonly string[]) => string;
}

/** Keeps what the first group matches, and removes the rest. */
const afterFirst = (mark: string, [before = ""]: readonly string[]): string => before + mark;

const PASSWORD =
  "(?<!\\bch)pass(?:word|wort|wd|[- ]?phrase|code)s?|kennwort|mot\\s?de\\s?passe|contrase(?:ñ|n)as?|senha|(?<![A-Za-z])(?:pass|pwd|pw|creds)";
/** Names of passwords, tokens and keys. hidden-lines.ts looks for them as well. */
export const NAMES =
  `${PASSWORD}|(?<!pull[-_]?)secrets?|tokens?|(?:api|access|secret|private|priv|routing|integration|account|auth|authentication|encryption|signing|k[-_]?g|bmc|preshared|pre-shared|certificate)[-_]?key|` +
  "key[-_]?store(?![\"']?\\s{0,4}[:=]\\s{0,4}[\"']?(?:/[a-z]{2}|[A-Z]:\\\\|file:))|key-data|certificate-data|authority-data|credentials?|dockerconfigjson|dockercfg|user-?data|session[-_]?id|signature|" +
  "community[-_ ]?(?:string|name)s?|snmp[-_]?community|(?<![A-Za-z])(?:auth|sig|sid|otp|psk|community|k[-_]?g)";
const ESCAPES = "\\\\{0,7}";
const QUOTED_END = `(?:${ESCAPES}["'])?`;
/** What follows a name: the quote that ends it, and what separates it from the value. */
const SEPARATOR = `(?:[-_]?(?:data|value|text|base64|b64|hash|\\d{1,3}))?${QUOTED_END}\\]?(?:[ \\t](?:is|name|value))?[ \\t]{0,8}(?:=>|->|:=|[:=：＝])[ \\t]{0,8}`;
/** Words that describe a secret and are not its value, as in `token expired`. */
const STATUS_WORD =
  "(?:must|is|was|has|expired|refused|required|missing|invalid|wrong|true|false|null|none|nil|undefined|empty|unset|unknown|rejected|denied)(?![\\w-])";
/** A further word of a password that has several words. Not the next name, and not a word after the end of a clause. */
const NEXT_WORD = "(?:(?<![,;.)}\\]])[ \\t]+(?![\\w./-]{1,64}[ \\t]?[=:])[^\\s=:,;&\"'|()[\\]{}<>]{1,64})";
/** In a query, `&` comes before the next name. */
const UNQUOTED = `[^\\s&"'<>${MARK_RANGE}](?:[^\\s&<>${MARK_RANGE}]|&(?![\\w.%[\\]-]{1,64}=)){0,4000}`;
const QUOTED = `b?(?<quote>${ESCAPES}["'])[^\\n]{0,4000}?\\k<quote>(?=\\s*(?:[,}\\]);&<:]|$)|\\s)`;
const LIST = `\\[[^\\]\\n${MARK_RANGE}]{1,4000}\\]?`;
const NOT_A_SECRET = `(?!["'\\[\\s]{0,4}[${MARK_RANGE}]|${STATUS_WORD}|\\d{1,3}(?![\\w!@#$%^&*.-])|["']{2}(?:$|[\\s,}]))`;

const KNOWN_TOKENS = [
  "eyJ[\\w-]{8,}(?:\\.[\\w-]*){1,4}",
  "gh[opsur]_\\w{16,}",
  "github_pat_\\w{16,}",
  "gl(?:pat|ptt|rt|dt|cbt)-[\\w-]{16,}",
  "xox[abeoprs]-[\\w-]{10,}",
  "hv[brs]\\.[\\w-]{16,}",
  // A token of Vault before 1.10.
  "s\\.(?=[A-Za-z]{0,23}\\d)(?=[a-z\\d]{0,23}[A-Z])[A-Za-z\\d]{24}",
  "hf_[A-Za-z\\d]{30,}",
  "[rs]k_(?:live|test)_\\w{16,}",
  "npm_\\w{30,}",
  "dckr_pat_[\\w-]{16,}",
  "AIza[\\w-]{30,}",
  "(?:AKIA|ASIA)[A-Z0-9]{16}",
  "sk-[\\w-]{20,}",
  "AGE-SECRET-KEY-1[A-Z0-9]{20,}",
  "[a-z0-9]{6}\\.[a-z0-9]{16}",
  // The WebSocket subprotocol by which a browser sends a bearer token to Kubernetes.
  "base64url\\.bearer\\.authorization\\.k8s\\.io\\.[\\w-]{6,}",
  // A keystore of Java in base64.
  "/u3\\+7Q[A-Za-z\\d+/]{16,}={0,2}",
].join("|");

const HEADERS =
  "(?:proxy-)?authorization|(?:set-)?cookie|x-[\\w-]{0,40}(?:token|api-?key|auth|csrf|session)[\\w-]{0,20}";
/** From the name of a header to its value: `Name: value`, `"name": ["value"]`, `"name", "value"`. */
const HEADER = `\\b(?:${HEADERS})(?:${QUOTED_END}\\s{0,8}[:=]\\s{0,8}\\[?|${ESCAPES}["']\\s{0,8},\\s{0,8})`;
const DIGEST_FIELD = `[\\w-]{1,40}\\s?=\\s?(?:(?<mark>${ESCAPES}["'])[^"'\\\\]{0,1000}\\k<mark>|[^\\s,"'\\\\]{1,1000})`;

/** The id of a session of Redfish, unless it is a short number. Some BMCs use it as the token of the session. */
const SESSION_PATH = /(\/Sessions\/(?:Members\/)?)(?!Members\b)([\w.~-]{8,})/gu;

const TEXT_RULES: readonly TextRule[] = [
  {
    kind: "private key",
    pattern:
      /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^]*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[^]*)/gu,
  },
  {
    kind: "authorization header",
    pattern: new RegExp(
      `\\b(Digest\\s{1,4})${DIGEST_FIELD}(?:\\s{0,4},\\s{0,4}${DIGEST_FIELD.replaceAll("mark", "more")}){0,20}`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "authorization header",
    pattern: new RegExp(
      `(${HEADER})(?!Digest\\s+[${MARK_RANGE}])(?:(?<quote>${ESCAPES}["'])[^\\n]{0,8000}?\\k<quote>|[^\\r\\n"'\\\\\\]${MARK_RANGE}]+)`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "authorization header",
    pattern: new RegExp(
      `\\b((?:[Bb]earer|BEARER|[Nn]egotiate)(?:\\s*[:=])?\\s+)(?=[^\\s"',;]{20}|[^\\s"',;]*\\d)[^\\s"',;\\\\${MARK_RANGE}]{6,}`,
      "gu",
    ),
    replace: afterFirst,
  },
  {
    kind: "authorization header",
    pattern: /\b((?:[Bb]asic|BASIC|[Dd]igest)\s+)(?=[a-z+/-]*[A-Z0-9=])[A-Za-z0-9+/=_-]{6,}/gu,
    replace: afterFirst,
  },
  {
    kind: "user and password in a URL",
    pattern:
      /:\/\/(?:[^\s"'<>]{1,2000}|[^\s"'<>/@:]{1,100}:(?!\d{1,5}(?:[/\s]|$))[^\s"'<>@/][^\n"'<>@/]{0,100})@(?=[\w[.%-])/gu,
    replace: (mark) => `://${mark}@`,
  },
  {
    kind: "user and password in a URL",
    pattern: /(?<![\w/.:%+-])([\w.%+-]{1,64}:)[^\s/@:"']{1,200}@(?!sha256:)(?=[\w[.-])/gu,
    replace: (mark, [user = ""]) => `${user}${mark}@`,
  },
  {
    kind: "named secret",
    // Python: `auth=("root", "password")`.
    pattern: new RegExp(
      `(\\bauth\\s{0,4}=\\s{0,4}\\w{0,40}\\(\\s{0,4}(?<user>["'])[^"'\\n]{0,100}\\k<user>\\s{0,4},\\s{0,4})(?<quote>["'])[^"'\\n]{1,400}\\k<quote>`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "line of a configuration",
    // What cloud-init gives to chpasswd. hidden-lines.ts has its other forms.
    pattern: /(\bchpasswd["']?\s?[:=]\s{0,4})[{["'][^\n]*/gu,
    replace: afterFirst,
  },
  {
    kind: "named secret",
    // The text of an XML element that has such a name. The next two rules are for a name in an attribute, and for a
    // name in a key of a property list.
    pattern: new RegExp(
      `(<(?:[\\w.-]{1,40}:)?[\\w.-]{0,40}(?:${NAMES})[\\w.-]{0,20}(?:\\s[^<>\\n]{0,500})?(?<!/)>)[^<\\n${MARK_RANGE}]{0,400}(?:<!\\[CDATA\\[[^\\n]{0,4000}?\\]\\]>|[^<\\s${MARK_RANGE}][^<\\n${MARK_RANGE}]{0,4000})`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "named secret",
    pattern: new RegExp(
      `(<[^<>\\n]{1,200}\\b(?:name|key|id)\\s?=\\s?["'][^"'<>\\n]{0,80}(?:${NAMES})["'][^<>\\n]{0,200}?(?:\\bvalue\\s?=\\s?["'](?=[^"'])|(?<!/)>(?=[^<\\s])))[^"'<\\n${MARK_RANGE}]{1,4000}`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "named secret",
    pattern: new RegExp(
      `(<key>[^<\\n]{0,80}(?:${NAMES})</key>\\s{0,80}<\\w{1,20}>)[^<\\n${MARK_RANGE}]{1,4000}`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "named secret",
    // A line of YAML: the value is the rest of the line.
    pattern: new RegExp(
      `^((?:\\S{20,40} )?[ \\t-]{0,64}["']?[\\w.-]{0,64}?(?:${NAMES})["']?:[ \\t]+)${NOT_A_SECRET}[^\\n{["'|>${MARK_RANGE}][^\\n${MARK_RANGE}]*$`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "named secret",
    pattern: new RegExp(
      `((?:${PASSWORD})${SEPARATOR})${NOT_A_SECRET}(?:${QUOTED}|${LIST}|${UNQUOTED}${NEXT_WORD}{0,8}|["']\\S{1,4000})`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "named secret",
    pattern: new RegExp(
      `((?:${NAMES})${SEPARATOR})${NOT_A_SECRET}(?:${QUOTED}|${LIST}|${UNQUOTED}|["'\\\\]\\S{1,4000})`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "named secret",
    // A row of a table.
    pattern: new RegExp(
      `([|│]\\s{0,40}(?:${PASSWORD})\\s{0,40}[|│]\\s{0,40})[^|│\\s${MARK_RANGE}][^|│\\n]{0,400}`,
      "giu",
    ),
    replace: (mark, [before = ""]) => `${before}${mark} `,
  },
  {
    kind: "line of a configuration",
    pattern: new RegExp(
      `((?:^|[\\s"'])(?:r[ow](?:community6?|user)|com2sec6?|createUser|snmp-server\\s+community|snmp(?:v[123]c?)?\\s+community|trapcommunity|(?:trap2?|inform)sink\\s+\\S{1,253}|(?:radius|tacacs)-server\\s+key|enable\\s+secret|bindpw|rootpw|requirepass|masterauth|identified\\s+(?:by|as)(?=\\s+["'])|set\\s+password\\s+(?:for\\s+\\S{1,64}\\s{0,4}=|\\d{1,3})|\\S{1,100}\\.password)[ \\t]+)[^\\n${MARK_RANGE}]+`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "line of a configuration",
    // A line of .netrc.
    pattern: new RegExp(
      `(\\b(?:login|user|username)\\s+(?!(?:and|or|of)\\b)\\S{1,64}\\s+pass(?:word)?\\s+(?:\\d{1,2}\\s+)?)(?!${STATUS_WORD})[^\\s${MARK_RANGE}]{1,400}`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "line of a configuration",
    pattern: /(\b[\w.-]{1,64}:)[^\s:"']{1,400}(?=["']?\s{0,4}\|\s{0,4}chpasswd)/gu,
    replace: afterFirst,
  },
  {
    kind: "line of a configuration",
    // A line of .pgpass: host:port:database:user:password.
    pattern: /^([\w.*-]{1,253}:(?:\d{1,5}|\*):[\w*-]{1,64}:[\w*-]{1,64}:)\S+$/gu,
    replace: afterFirst,
  },
  {
    kind: "line of a configuration",
    pattern:
      /(\b(?:echo|printf)\s{1,4}(?:-\w{1,4}\s{1,4})?)[^\n|]{1,400}(?=\|\s{0,4}(?:\S{1,40}\s{1,4}){0,4}(?:passwd|cryptsetup|--(?:password-)?stdin)\b)/gu,
    replace: (mark, [before = ""]) => `${before}${mark} `,
  },
  {
    kind: "line of a configuration",
    pattern: new RegExp(`(--from-literal[=\\s]["']?[\\w.-]{1,253}=)[^\\s${MARK_RANGE}]{1,4000}`, "gu"),
    replace: afterFirst,
  },
  {
    kind: "password in a sentence",
    pattern:
      /(\bpass(?:word|wort|wd|phrase)\s{1,4}from\s{1,4})(?=\S{0,200}[\d!@#$%^&*])\S{1,200}(\s{1,4}to\s{1,4})\S{1,200}/giu,
    replace: (mark, [before = "", between = ""]) => `${before}${mark}${between}${mark}`,
  },
  {
    kind: "password in a sentence",
    pattern: new RegExp(
      `(\\b(?:pass|pw|pwd|community)\\s{1,4}["'\`]?)(?=[^\\s"'\`]{0,200}\\d)(?=[^\\s"'\`]{0,200}[A-Za-z])[^\\s"'\`)${MARK_RANGE}]{4,}`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "password in a sentence",
    pattern: new RegExp(
      `(\\blogin\\s{1,4}(?:failed\\s{1,4})?(?:for\\s{1,4})?(?:user\\s{1,4})?(?:root|admin(?:istrator)?|USERID)\\s{0,2}[/:]\\s{0,2})(?!${STATUS_WORD}|\\d{3}\\b)[^\\s"'\`${MARK_RANGE}]{4,400}`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "password in a sentence",
    pattern:
      /(\bpass(?:word|wort|wd|phrase)\s{1,4}(?:(?:for|of|für)\s{1,4}[^\s"']{1,64}\s{1,4}(?=(?:has|was|will|is|to|as|ist|lautet)\s))?(?:(?:has|been|changed|set|reset|rotated|updated)\s{1,4}){0,3}(?:(?:is|was|will\s{1,4}be|to|as|ist|lautet)\s{1,4})?(?:\d{1,2}\s{1,4})?)(?:(?=\S{0,200}[\d!@#$%^&*])\S{1,200}|(?<quote>["'`])(?=\S)[^\n"'`]{1,200}\k<quote>)/giu,
    replace: afterFirst,
  },
  {
    kind: "password in a sentence",
    // Leaves out users of Kubernetes, whose names begin with `system:`, and Secrets as `namespace/name`.
    pattern: new RegExp(
      `(\\b(?:credentials\\s{1,4}(?!system:)[\\w.-]{1,64}:(?!/)|log(?:in|ged\\s{1,4}in)\\s{1,4}(?:as|with)\\s{1,4}(?:(?:root|admin(?:istrator)?|USERID)[/:]|(?!system:)[\\w.-]{1,64}[/:](?=[a-z\\d.-]{0,200}[^\\sa-z\\d.-]))))[^\\s"'\`${MARK_RANGE}]{1,400}`,
      "gu",
    ),
    replace: afterFirst,
  },
  {
    kind: "password in a sentence",
    pattern: new RegExp(
      `(\\b(?:session|access|auth|bearer)[- ]?token\\s{1,4}(?:(?:is|was)\\s{1,4})?["'\`]?)(?=[^\\s"'\`]{0,200}\\d)[^\\s"'\`${MARK_RANGE}]{8,}`,
      "giu",
    ),
    replace: afterFirst,
  },
  {
    kind: "token of a known form",
    pattern: SESSION_PATH,
    replace: afterFirst,
  },
  {
    kind: "token of a known form",
    pattern: new RegExp(`(?<![\\w.])(?:${KNOWN_TOKENS})(?![\\w])`, "gu"),
  },
  {
    kind: "token of a known form",
    pattern: /(\bhooks\.slack\.com\/services\/|\/api\/webhooks\/)[\w/-]{8,}/gu,
    replace: afterFirst,
  },
  {
    kind: "password hash",
    pattern:
      /\$(?:1|2[abxy]?|5|6|7|y|gy|apr1|argon2\w{0,3})\$[^\s"',]{8,}|\{S?(?:SHA|MD5|CRYPT)\d{0,3}\}[\w+/=.$-]{8,}|SCRAM-SHA-\d{1,3}\$\S{8,}|grub\.pbkdf2\.\S{8,}|(?<=:)[0-9a-fA-F]{32}:[0-9a-fA-F]{32}(?=:)/gu,
  },
];

/**
 * No rule above and none of command-lines.ts changes a line without a match. Most lines have none, so one search
 * replaces many.
 */
const TRIGGER = new RegExp(
  String.raw`pass|log(?:in|ged)|pwd|pw|kennwort|contrase|senha|cred|secret|token|key|certificate|auth|docker|user-?data|session|sig|commun|psk|k[-_]?g|sid|otp|from-literal|stdin|cryptsetup|base64url|cookie|x-|bearer|negotiate|basic|digest|://|@|BEGIN|hooks|\$|\{S?(?:SHA|MD5|CRYPT)|grub|snmp|sink|com2sec|createUser|r[ow]user|ipmi|racadm|wsman|redfish|ilorest|hponcfg|mysql|mariadb|fence_|curl|wget|http|redis|ldap|freerdp|smb|identified|:[0-9a-f]{32}:|:(?:\d{1,5}|\*):[A-Za-z_*]|-P|${KNOWN_TOKENS}`,
  "iu",
);

export function mayHoldSecret(line: string): boolean {
  return TRIGGER.test(line);
}

/**
 * The ids of Redfish sessions in the paths of a line. They have to be removed elsewhere too: the body of a session
 * contains its id as a plain `Id`.
 */
export function sessionIdsIn(line: string): string[] {
  return [...line.matchAll(SESSION_PATH)].map(([, , id = ""]) => id);
}

/** Replaces the secrets in one line by marks (`marks.ts`). */
export function markSecrets(line: string): string {
  return TEXT_RULES.reduce((text, { kind, pattern, replace }) => {
    const mark = markOf(kind);
    if (replace === undefined) return text.replaceAll(pattern, mark);
    return text.replaceAll(pattern, (_all, ...groups: unknown[]) =>
      replace(
        mark,
        groups.filter((group) => typeof group === "string"),
      ),
    );
  }, line);
}
