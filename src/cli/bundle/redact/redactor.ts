import type { Fields } from "../../../runtime/record.ts";
import { markArguments, secretInList } from "./command-lines.ts";
import { decoded } from "./encodings.ts";
import { HiddenLines } from "./hidden-lines.ts";
import { KnownSecrets } from "./known-secrets.ts";
import type { SecretKind } from "./marks.ts";
import { countMarks, expandMarks, inWords, withoutMarks } from "./marks.ts";
import { markRandom } from "./random-text.ts";
import { isSecretName } from "./secret-names.ts";
import { markSecrets, mayHoldSecret, sessionIdsIn } from "./text-rules.ts";

/** The longest text that is searched and shown. No message of Kubernetes and no line of a log needs more. */
const TEXT_CHARACTERS_MAX = 16_384;
const DEPTH_MAX = 64;
const HARMLESS_CHARS_MAX = 64;
const HARMLESS_MAX = 10_000;
/** Terminal colors, which may come between the letters of a name. */
// eslint-disable-next-line no-control-regex
const COLORS = /\u001b\[[0-9;]{0,32}m/gu;

/** Annotations of projects that keep state there, which a bundle needs. Any other annotation may hold a secret. */
const KNOWN_ANNOTATIONS =
  /^(?:[\w.-]+\.)?(?:ironfence\.io|medik8s\.io|metal3\.io|cluster\.x-k8s\.io|machine\.openshift\.io|argocd\.argoproj\.io|helm\.sh)\//u;
const KNOWN_VARIABLES = /^(?:IRONFENCE_|POD_|NODE_NAME$)/u;
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** The fields of a reference to a Secret. Their values are not secret. */
const REFERENCE_FIELDS: ReadonlySet<string> = new Set([
  "name",
  "namespace",
  "key",
  "kind",
  "apiVersion",
  "apiGroup",
  "uid",
  "resourceVersion",
  "optional",
  "credentialsVersion",
]);

/**
 * Removes secrets from what goes into a support bundle. It removes too much rather than too little. A secret that was
 * found under a name is removed everywhere else as well (`finish`).
 */
export class Redactor {
  readonly #counts = new Map<SecretKind, number>();
  readonly #known: KnownSecrets;
  /** Short texts without secrets that occur often, such as names of fields. */
  readonly #harmless = new Set<string>();

  constructor(known = new KnownSecrets()) {
    this.#known = known;
  }

  /** How often each kind of secret was removed. */
  get counts(): ReadonlyMap<SecretKind, number> {
    return this.#counts;
  }

  /**
   * The number of secrets that were removed where they were found, but for which there was no memory to remove them
   * elsewhere.
   */
  get missed(): number {
    return this.#known.missed;
  }

  /** Removes secrets from free text, such as a message. */
  text(text: string): string {
    return this.lines(shorten(text).split("\n")).join("\n");
  }

  /** Removes secrets from a value of JSON, such as a Kubernetes object. */
  value(value: unknown): unknown {
    return this.#value(value, 0, false);
  }

  /** Removes secrets from lines of a log, of which some may be JSON objects. */
  lines(lines: readonly string[]): string[] {
    return this.lineSearch()(lines);
  }

  /** Like `lines`, for a text that comes in batches of lines. A secret with several lines becomes one line. */
  lineSearch(): (lines: readonly string[]) => string[] {
    const hidden = new HiddenLines();
    let wasHidden = false;
    return (lines) =>
      lines.flatMap((line) => {
        const secret = hidden.next(line);
        const isFirst = !wasHidden;
        wasHidden = secret !== undefined;
        if (secret === undefined) return [this.#line(line)];
        // A line of several words may be a sentence.
        if (!/\s/u.test(secret)) this.#known.add(secret);
        return isFirst ? [this.#mark("named secret")] : [];
      });
  }

  /** Removes the secrets that were found in any other text. Call it after all texts went through the methods above. */
  finish(text: string): string {
    return this.#known.replaceIn(text, () => this.#mark("known secret"));
  }

  #plain(line: string): string {
    if (this.#harmless.has(line)) return line;
    const shown = this.#marked(line);
    if (shown === line && line.length <= HARMLESS_CHARS_MAX && this.#harmless.size < HARMLESS_MAX) {
      this.#harmless.add(line);
    }
    return shown;
  }

  #marked(line: string): string {
    const text = withoutMarks(shorten(line)).replaceAll(COLORS, "");
    const marked = markLine(text);
    const clear = decoded(text);
    for (const id of sessionIdsIn(clear ?? text)) this.#known.add(id);
    const inClear = clear === undefined ? marked : markLine(clear);
    // If both have the same number of marks, show the decoded text: a mark in it may cover a secret that is not marked
    // in the other.
    const shown = countMarks(inClear) > 0 && countMarks(inClear) >= countMarks(marked) ? inClear : marked;
    return expandMarks(shown, (kind) => this.#mark(kind));
  }

  /** A line may be a value of JSON. In a log, a timestamp of the API server may come before it. */
  #line(line: string): string {
    const start = line.search(/[{[]/u);
    if (start === 0 || /^\S+ [{[]/u.test(line)) {
      const parsed = parseJson(line.slice(start));
      if (typeof parsed === "object" && parsed !== null) {
        // Show the parsed value, never the line: if two fields have the same name, only the last one was searched.
        return this.#plain(line.slice(0, start)) + JSON.stringify(this.value(parsed));
      }
    }
    return this.#plain(line);
  }

  #mark(kind: SecretKind): string {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    return inWords(kind);
  }

  #value(value: unknown, depth: number, isSecret: boolean): unknown {
    if (depth > DEPTH_MAX) return "[too deep]";
    if (typeof value === "string") return isSecret ? this.#secret(value) : this.#string(value, depth);
    if (typeof value === "number") return isSecret ? this.#mark("named secret") : value;
    if (Array.isArray(value)) return this.#list(value, depth, isSecret);
    if (typeof value === "object" && value !== null) return this.#object(value as Fields, depth, isSecret);
    return value;
  }

  /** The list may contain the arguments of a program, or headers. */
  #list(items: readonly unknown[], depth: number, isSecret: boolean): unknown[] {
    return items.map((item, index) => {
      const found = isSecret ? undefined : secretInList(items, index);
      if (found === undefined || typeof item !== "string") return this.#value(item, depth + 1, isSecret);
      return item.slice(0, found.keeps) + this.#secret(item.slice(found.keeps));
    });
  }

  /** A text may be JSON itself, as annotations are. */
  #string(text: string, depth: number): string {
    const parsed = /^\s*[{[]/u.test(text) ? parseJson(text) : undefined;
    return parsed === undefined ? this.text(text) : JSON.stringify(this.#value(parsed, depth + 1, false));
  }

  #object(fields: Fields, depth: number, isSecret: boolean): unknown {
    const isSecretObject = fields["kind"] === "Secret";
    // An entry of `env`, of arguments or of headers.
    const named = fields["name"] ?? fields["key"];
    const isPair = typeof named === "string" && "value" in fields;
    const entries = Object.entries(fields).map(([name, value]): [string, unknown] => {
      // In an object that is used as a map, a name may be a secret.
      const shown = this.text(name);
      if (name === "managedFields") return [shown, this.#mark("managedFields")];
      if (isSecretObject && (name === "data" || name === "stringData")) return [shown, this.#data(value)];
      if (name === "annotations") return [shown, this.#annotations(value, depth + 1)];
      if (name === "env" && Array.isArray(value)) return [shown, value.map((item) => this.#variable(item, depth + 1))];
      if (isPair && name === "value" && isSecretName(named)) return [shown, this.#value(value, depth + 1, true)];
      if (isSecret && REFERENCE_FIELDS.has(name)) return [shown, this.#value(value, depth + 1, false)];
      return [shown, this.#value(value, depth + 1, isSecret || isSecretName(name))];
    });
    return Object.fromEntries(entries);
  }

  /** Shows the keys of a Secret without their values. */
  #data(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return this.#mark("data of a Secret");
    return Object.fromEntries(Object.keys(value).map((name) => [name, this.#mark("data of a Secret")]));
  }

  #annotations(value: unknown, depth: number): unknown {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return this.#value(value, depth, true);
    return Object.fromEntries(
      Object.entries(value).map(([name, annotation]) => {
        const shown = this.text(name);
        if (name === LAST_APPLIED) return [shown, this.#mark("last applied configuration")];
        if (!KNOWN_ANNOTATIONS.test(name)) return [shown, this.#mark("annotation of another project")];
        return [shown, this.#value(annotation, depth, isSecretName(name))];
      }),
    );
  }

  #variable(item: unknown, depth: number): unknown {
    if (typeof item !== "object" || item === null || !("value" in item)) return this.#value(item, depth, false);
    const { name, value } = item as Fields;
    const text = typeof name === "string" ? name : "";
    if (KNOWN_VARIABLES.test(text) && !isSecretName(text)) return this.#value(item, depth, false);
    if (typeof value === "string" && isSecretName(text)) this.#known.add(value);
    return { name: this.text(text), value: this.#mark("environment variable") };
  }

  #secret(value: string): string {
    if (value === "") return value;
    this.#known.add(value);
    return this.#mark("named secret");
  }
}

function shorten(text: string): string {
  const rest = text.length - TEXT_CHARACTERS_MAX;
  return rest <= 0 ? text : `${text.slice(0, TEXT_CHARACTERS_MAX)} [${rest} more characters]`;
}

/** One line with a mark for each secret. */
function markLine(line: string): string {
  return markRandom(mayHoldSecret(line) ? markArguments(markSecrets(line)) : line);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
