import {
  BARE_METAL_REMEDIATIONS,
  BARE_METAL_REMEDIATION_TEMPLATES,
} from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { CustomKind } from "../../src/api/schema/kind.ts";
import { toCrd } from "./crd.ts";
import { wrapItem } from "./metrics-page.ts";

/** The keywords of a schema in a CRD that the pages show. */
interface Schema {
  description?: string;
  type?: string;
  format?: string;
  default?: unknown;
  enum?: readonly unknown[];
  minimum?: number;
  maximum?: number;
  maxItems?: number;
  required?: readonly string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-validations"?: readonly { message?: string }[];
}

const NOTE = "<!-- Generated from src/api by `npm run generate`; do not edit. -->";
const PATHS = `Paths are relative to the heading. \`[]\` is each entry of a list, and \`{}\` each value of a map.`;

/** The page docs/reference/remediation-fields.md. */
export function remediationFieldsPage(): string {
  const { spec, status } = rootOf(BARE_METAL_REMEDIATIONS);
  const { kind } = BARE_METAL_REMEDIATION_TEMPLATES;
  return `${NOTE}

# Fields of a remediation

All fields of a \`BareMetalRemediation\`, as \`kubectl explain bmr --recursive\` shows them.
[How a remediation goes](../explanation/remediation.md) explains what they do together.

A \`${kind}\` has the fields of \`spec\` under \`spec.template.spec\`. A health check creates
each remediation from a template. A later change of the template does not change remediations that exist.

${PATHS}

## spec

${itemsOf(spec)}

## status

${itemsOf(status)}
`;
}

/** The page docs/reference/node-health-check-fields.md. */
export function healthCheckFieldsPage(): string {
  const { root, spec, status } = rootOf(NODE_HEALTH_CHECKS);
  return `${NOTE}

# Fields of a NodeHealthCheck

All fields of a \`NodeHealthCheck\`, as \`kubectl explain nhc --recursive\` shows them.
[How the detector decides](../explanation/detector.md) explains what they do together.

${PATHS}

## Rules

The API server refuses a NodeHealthCheck that breaks one of these:

${[...new Set(rulesOf(root))].map((rule) => wrapItem(`${rule}.`, "")).join("\n")}

## spec

${itemsOf(spec)}

## status

${itemsOf(status)}
`;
}

function rootOf(kind: CustomKind): { root: Schema; spec: Schema; status: Schema } {
  const { spec: crd } = toCrd(kind) as { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } };
  const root = crd.versions[0]?.schema.openAPIV3Schema ?? {};
  const { spec = {}, status = {} } = root.properties ?? {};
  return { root, spec, status };
}

function itemsOf(schema: Schema): string {
  return [...fieldsOf(schema, "")].join("\n");
}

/** A list item for each field of an object, followed by the items of its own fields. */
function* fieldsOf({ properties = {}, required = [] }: Schema, prefix: string): Iterable<string> {
  for (const [name, field] of Object.entries(properties)) {
    const path = prefix + name;
    const facts = [typeOf(field), required.includes(name) && "required", boundsOf(field), defaultOf(field)];
    const rules = isDuration(field) ? [] : rulesOf(field);
    const sentences = [field.description ?? "", valuesOf(field), ...rules.map((rule) => `It ${rule}.`)];
    yield wrapItem(
      `\`${path}\` (${facts.filter((fact) => typeof fact === "string").join(", ")}): ${sentences.filter((sentence) => sentence !== "").join(" ")}`,
      "",
    );
    yield* fieldsOf(field, `${path}.`);
    if (field.items !== undefined) yield* fieldsOf(field.items, `${path}[].`);
    if (field.additionalProperties !== undefined) yield* fieldsOf(field.additionalProperties, `${path}{}.`);
  }
}

function typeOf(field: Schema): string {
  if (field["x-kubernetes-int-or-string"] === true) return "integer or string";
  if (isDuration(field)) return "duration";
  if (field.format === "date-time") return "time";
  if (field.items !== undefined) return `list of ${typeOf(field.items)}s`;
  if (field.additionalProperties !== undefined) return `map of ${typeOf(field.additionalProperties)}s`;
  return field.type ?? "any";
}

function isDuration(field: Schema): boolean {
  return rulesOf(field).some((rule) => rule.startsWith("must be a duration"));
}

function rulesOf(field: Schema): string[] {
  return (field["x-kubernetes-validations"] ?? []).flatMap(({ message }) => message ?? []);
}

function boundsOf({ minimum, maximum, maxItems }: Schema): string | undefined {
  if (maxItems !== undefined) return `at most ${maxItems}`;
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  if (minimum !== undefined) return `at least ${minimum}`;
  return maximum === undefined ? undefined : `at most ${maximum}`;
}

/** The default of a field. An object whose fields have defaults has the default \`{}\`, which is not shown. */
function defaultOf(field: Schema): string | undefined {
  if (field.default === undefined || JSON.stringify(field.default) === "{}") return undefined;
  return `default \`${typeof field.default === "string" ? field.default : JSON.stringify(field.default)}\``;
}

/** The values of an enum, unless the description has them. */
function valuesOf({ description = "", ...field }: Schema): string {
  const values = (field.enum ?? field.items?.enum ?? []).map(String);
  if (values.every((value) => description.includes(value))) return "";
  return `One of ${values.map((value) => `\`${value}\``).join(", ")}.`;
}
