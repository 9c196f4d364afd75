/** The memory for forms of secrets, in characters: enough for some 40,000 passwords. */
const CHARACTERS_MAX = 4 * 1_024 * 1_024;
/** Every form has at least this many characters. */
const PREFIX_CHARS = 6;
const SECRET_CHARS_MAX = 512;
const TABLE_SIZE = 2 ** 16;

/** Secrets that were found under a name, in every form in which another text may contain them. */
export class KnownSecrets {
  readonly #charactersMax: number;
  /** All forms, grouped by their first characters. */
  readonly #forms = new Map<string, SamePrefix>();
  /** Whether any form begins with characters of this hash. It rules out most places in a text at once. */
  readonly #begins = new Uint8Array(TABLE_SIZE);
  #characters = 0;
  #missed = 0;

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax;
  }

  /** The number of secrets for which there was no memory left. */
  get missed(): number {
    return this.#missed;
  }

  /** Keeps only what looks like a password: a common word or a name must stay in the bundle. */
  add(secret: string): void {
    const isPassword =
      secret.length >= PREFIX_CHARS && secret.length <= SECRET_CHARS_MAX && /\d|[A-Z].*[a-z]|[^\w./:-]/u.test(secret);
    if (!isPassword || /^[\d.:TZ-]+$/u.test(secret)) return;
    const forms = formsOf(secret).filter((form) => form.length >= PREFIX_CHARS && !this.#has(form));
    const characters = forms.reduce((sum, form) => sum + form.length, 0);
    if (this.#characters + characters > this.#charactersMax) {
      this.#missed += 1;
      return;
    }
    this.#characters += characters;
    for (const form of forms) this.#keep(form);
  }

  /** Replaces every form of every known secret. */
  replaceIn(text: string, mark: () => string): string {
    if (this.#forms.size === 0) return text;
    let result = "";
    let from = 0;
    for (let at = 0; at + PREFIX_CHARS <= text.length; at += 1) {
      if (this.#begins[hashAt(text, at)] === 0) continue;
      const same = this.#forms.get(text.slice(at, at + PREFIX_CHARS));
      const length = same?.lengths.find((each) => same.forms.has(text.slice(at, at + each)));
      if (length === undefined) continue;
      result += text.slice(from, at) + mark();
      from = at + length;
      at = from - 1;
    }
    return from === 0 ? text : result + text.slice(from);
  }

  #has(form: string): boolean {
    return this.#forms.get(form.slice(0, PREFIX_CHARS))?.forms.has(form) === true;
  }

  #keep(form: string): void {
    const prefix = form.slice(0, PREFIX_CHARS);
    const same = this.#forms.get(prefix) ?? { forms: new Set(), lengths: [] };
    same.forms.add(form);
    if (!same.lengths.includes(form.length)) {
      same.lengths.push(form.length);
      same.lengths.sort((one, other) => other - one);
    }
    this.#forms.set(prefix, same);
    this.#begins[hashAt(form, 0)] = 1;
  }
}

interface SamePrefix {
  forms: Set<string>;
  /** The lengths of the forms, each once, the longest first. All of them are tried at one place. */
  lengths: number[];
}

function hashAt(text: string, at: number): number {
  return (
    (text.charCodeAt(at) * 31 + text.charCodeAt(at + 1) * 1_021 + text.charCodeAt(at + 2) * 32_749) & (TABLE_SIZE - 1)
  );
}

/** A secret as it is, and as JSON, URLs, forms and base64 write it. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const inUrlLower = inUrl.replaceAll(/%[0-9A-F]{2}/gu, (code) => code.toLowerCase());
  const inForm = new URLSearchParams({ "": secret }).toString().slice(1);
  const encoded = [bytes.toString("base64"), bytes.toString("base64url"), inUrl, inUrlLower, inForm];
  return [...new Set([secret, JSON.stringify(secret).slice(1, -1), ...encoded])];
}
