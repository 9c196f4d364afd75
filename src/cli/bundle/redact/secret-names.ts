/**
 * The end of a name whose value is a secret: of a field, a variable, a flag or a header. A reference to a Secret
 * (`secretRef`, `credentialsName`, `tokenFile`) ends in another word and is kept.
 */
const WORDS = [
  "pass(?:word|wort|wd|phrase|code)?s?",
  "pwd",
  "pw",
  "secrets?",
  "tokens?",
  "credentials?",
  "auth",
  "(?:proxy-?)?authorization",
  "(?:set-?)?cookies?",
  "(?:api|access|secret|private|priv|routing|integration|signing|encryption|authentication|auth|preshared|account|bmc|k-?g|ssh|session)-?key",
  "psk",
  "k-?g",
  "otp",
  "sid",
  "login",
  "creds",
  "kennwort",
  "key-?store",
  "(?:client-)?key-data",
  "(?:client-certificate|certificate-authority)-data",
  "\\.?docker-?config-?json",
  "\\.?dockercfg",
  "kube-?config",
  "user-?data",
  "communit(?:y|ies)",
  "community-?(?:string|name)s?",
  "session-?id",
  "sas-?url",
  "connection-?string",
].join("|");
const SUFFIX = "(?:-?(?:data|value|text|base64|b64|hash|id|\\d{1,3}))?";

const WHOLE_NAME = new RegExp(`(?:^|-|\\.)(?:${WORDS})${SUFFIX}$`, "u");
/** Words that name a secret even at the end of a longer word: `PGPASSWORD`. */
const INSIDE =
  /(?:password|passwort|passwd|passphrase|secret|token|apikey)(?:-?(?:data|value|base64|b64|hash|\d{1,3}))?$/u;

/** Whether the value of a field, variable, flag or header with this name is a secret. */
export function isSecretName(name: string): boolean {
  const plain = name
    .replaceAll(/([a-z0-9])([A-Z])/gu, "$1-$2")
    .toLowerCase()
    .replaceAll(/[\s_/]+/gu, "-");
  return WHOLE_NAME.test(plain) || INSIDE.test(plain);
}
