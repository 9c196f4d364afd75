/** How many times a text is decoded, because encodings may be nested. */
const DEPTH_MAX = 3;

const ENTITIES: Readonly<Record<string, string>> = { quot: '"', apos: "'", lt: "<", gt: ">", amp: "&" };

/**
 * Decodes percent-encoding, `\u003d` of JSON and entities of HTML, because the rules find no name and value in encoded
 * text. Undefined if the line has none of these.
 */
export function decoded(line: string): string | undefined {
  let text = line;
  for (let depth = 0; depth < DEPTH_MAX; depth += 1) {
    const next = decodeOnce(text);
    if (next === text) break;
    text = next;
  }
  return text === line ? undefined : text;
}

function decodeOnce(text: string): string {
  return text
    .replaceAll(/%([2-7][0-9A-Fa-f])/gu, (_all, code: string) => characterOf(code, 16))
    .replaceAll(/\\+u00([2-7][0-9A-Fa-f])/gu, (_all, code: string) => characterOf(code, 16))
    .replaceAll(/&#x([2-7][0-9A-Fa-f]);/gu, (_all, code: string) => characterOf(code, 16))
    .replaceAll(/&#(\d{2,3});/gu, (all, code: string) =>
      Number(code) >= 32 && Number(code) < 127 ? characterOf(code, 10) : all,
    )
    .replaceAll(/&(quot|apos|lt|gt|amp);/gu, (_all, name: string) => ENTITIES[name] ?? "");
}

function characterOf(code: string, radix: number): string {
  return String.fromCharCode(Number.parseInt(code, radix));
}
