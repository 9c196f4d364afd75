import { isSecretName } from "./secret-names.ts";
import type { SecretKind } from "./text-rules.ts";
import { hiddenIn, isSecretArgument, RANDOM_RUN, TEXT_RULES, withoutShortFlags } from "./text-rules.ts";
import type { Fields } from "../../../runtime/record.ts";

/** A longer text is cut before it is searched: no message of Kubernetes and no line of a log needs more. */
const TEXT_CHARACTERS_MAX = 16_384;
const DEPTH_MAX = 64;
/** About 150 secrets, each in all its forms. */
const KNOWN_MAX = 1_000;
/** A private key has fewer lines. The bound limits how much of a log one line that begins a key can remove. */
const KEY_LINES_MAX = 200;

/** Annotations of projects that keep state there, which a bundle needs. Any other annotation may hold a secret. */
const KNOWN_ANNOTATIONS =
  /^(?:[\w.-]+\.)?(?:ironfence\.io|medik8s\.io|metal3\.io|cluster\.x-k8s\.io|machine\.openshift\.io|argocd\.argoproj\.io|helm\.sh)\//u;
const KNOWN_VARIABLES = /^(?:IRONFENCE_|POD_|NODE_NAME$)/u;
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** What a reference to a Secret is made of. */
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
 * Removes secrets from what goes into a support bundle. It removes too much rather than too little. A secret that was found
 * under a name is removed everywhere else as well (`finish`).
 */
export class Redactor {
  readonly #counts = new Map<SecretKind, number>();
  readonly #known = new Set<string>();

  /** How often each kind of secret was removed. */
  get counts(): ReadonlyMap<SecretKind, number> {
    return this.#counts;
  }

  /** Free text, such as a message. */
  text(text: string): string {
    let result = text;
    if (text.length > TEXT_CHARACTERS_MAX) {
      const rest = text.length - TEXT_CHARACTERS_MAX;
      result = `${text.slice(0, TEXT_CHARACTERS_MAX)} [${rest} more characters]`;
    }
    for (const { kind, pattern, replace } of TEXT_RULES) {
      result = result.replaceAll(pattern, (_all, ...groups: unknown[]) =>
        replace(
          this.#mark(kind),
          groups.filter((group) => typeof group === "string"),
        ),
      );
    }
    result = withoutShortFlags(result, () => this.#mark("secret of a flag"));
    return result.replaceAll(RANDOM_RUN, (run) => {
      const kind = hiddenIn(run);
      return kind === undefined ? run : this.#mark(kind);
    });
  }

  /** A value of JSON, such as a Kubernetes object. */
  value(value: unknown): unknown {
    return this.#value(value, 0, false);
  }

  /** Lines of a log, of which some are JSON objects. */
  lines(lines: readonly string[]): string[] {
    const result: string[] = [];
    let keyLines = 0;
    for (const line of lines) {
      const begins = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY/u.test(line);
      const ends = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY/u.test(line);
      if (keyLines > 0) {
        keyLines = ends ? 0 : keyLines - 1;
        continue;
      }
      result.push(this.#line(line));
      if (begins && !ends && !line.includes("{")) keyLines = KEY_LINES_MAX;
    }
    return result;
  }

  /** Removes from a complete text the secrets that were found anywhere. */
  finish(text: string): string {
    if (this.#known.size === 0) return text;
    const longestFirst = [...this.#known].sort((one, other) => other.length - one.length);
    const pattern = new RegExp(
      longestFirst.map((known) => known.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")).join("|"),
      "gu",
    );
    return text.replaceAll(pattern, () => this.#mark("known secret"));
  }

  #line(line: string): string {
    // The API server puts a timestamp before each line if asked.
    const start = line.indexOf("{");
    if (start === 0 || /^\S+ \{/u.test(line)) {
      const parsed = parseJson(line.slice(start));
      if (parsed !== undefined) return this.text(line.slice(0, start)) + JSON.stringify(this.value(parsed));
    }
    return this.text(line);
  }

  #mark(kind: SecretKind): string {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    return `[redacted: ${kind}]`;
  }

  #value(value: unknown, depth: number, isSecret: boolean): unknown {
    if (depth > DEPTH_MAX) return "[too deep]";
    if (typeof value === "string") return isSecret ? this.#secret(value) : this.#string(value, depth);
    if (typeof value === "number") return isSecret ? this.#mark("named secret") : value;
    if (Array.isArray(value)) return this.#list(value, depth, isSecret);
    if (typeof value === "object" && value !== null) return this.#object(value as Fields, depth, isSecret);
    return value;
  }

  /** A list may be that of the arguments of a program. */
  #list(items: readonly unknown[], depth: number, isSecret: boolean): unknown[] {
    return items.map((item, index) => {
      const flag: unknown = items[index - 1];
      const follows = typeof item === "string" && typeof flag === "string" && isSecretArgument(flag, item);
      return this.#value(item, depth + 1, isSecret || follows);
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

  /** The names in a Secret, without their values. */
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
    if (typeof value === "string" && isSecretName(text)) this.#learn(value);
    return { name: this.text(text), value: this.#mark("environment variable") };
  }

  #secret(value: string): string {
    if (value === "") return value;
    this.#learn(value);
    return this.#mark("named secret");
  }

  /** Only what looks like a password is removed everywhere: a common word or a name must stay. */
  #learn(value: string): void {
    const isPassword = value.length >= 6 && value.length <= 512 && /\d|[A-Z].*[a-z]|[^\w./:-]/u.test(value);
    if (!isPassword || this.#known.size >= KNOWN_MAX || /^[\d.:TZ-]+$/u.test(value)) return;
    const bytes = Buffer.from(value);
    const inUrl = encodeURIComponent(value.toWellFormed());
    const inUrlLower = inUrl.replaceAll(/%[0-9A-F]{2}/gu, (code) => code.toLowerCase());
    const inForm = new URLSearchParams({ "": value }).toString().slice(1);
    const encoded = [bytes.toString("base64"), bytes.toString("base64url"), inUrl, inUrlLower, inForm];
    for (const form of [value, JSON.stringify(value).slice(1, -1), ...encoded]) this.#known.add(form);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
