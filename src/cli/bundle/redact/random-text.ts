import { markOf } from "./marks.ts";

/** Runs of the characters of base64, hex and most random tokens, that are not part of a path or of a host name. */
const RANDOM_RUN = /(?<![A-Za-z0-9+/_.-])[A-Za-z0-9+_-][A-Za-z0-9+/_-]{10,}={0,2}/gu;

const BASE64 = /^[A-Za-z0-9+/_-]{6,}={0,2}$/u;
const PRINTABLE = /^[\x20-\x7e\s]+$/u;

/** Replaces text that is as random as a key or a token, and users with passwords in base64. */
export function markRandom(line: string): string {
  return line.replaceAll(RANDOM_RUN, (run) => {
    const kind = hiddenIn(run);
    return kind === undefined ? run : markOf(kind);
  });
}

/** What kind of secret a run is; undefined for a name, a path, a UUID or a digest. */
function hiddenIn(run: string): "encoded user and password" | "long random text" | undefined {
  if (!/[A-Z]/u.test(run) || !/[a-z]/u.test(run)) return undefined;
  const plain = fromBase64(run);
  if (PRINTABLE.test(plain) && /^[^\s:]+:\S|pass(?:word|wd)|PRIVATE KEY|token/iu.test(plain)) {
    return "encoded user and password";
  }
  // By chance, no name or path is a text in base64 that is itself in base64.
  if (BASE64.test(plain) && PRINTABLE.test(fromBase64(plain))) return "encoded user and password";
  return run.length >= 40 && /[0-9]/u.test(run) && isRandom(run) ? "long random text" : undefined;
}

function fromBase64(text: string): string {
  return Buffer.from(text, "base64").toString("latin1");
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
