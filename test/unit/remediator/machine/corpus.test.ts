import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parse } from "yaml";
import type { BareMetalRemediationStatus } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { decide } from "../../../../src/remediator/machine/decide.ts";
import { parseState, STATE_NAMES } from "../../../../src/remediator/machine/model/decision/state.ts";
import { NOW, snapshot } from "./snapshots.ts";

// Statuses that released versions have written (test/corpus/record.ts), and the schemas of their CRDs. An upgraded
// agent finds such statuses, and after a rollback, the old schema applies.

const CORPUS = new URL("../../../corpus/", import.meta.url);
const VERSIONS = readdirSync(CORPUS, { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);

const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, CORPUS), "utf8"));
const statusesOf = (version: string) => read(`${version}/statuses.json`) as BareMetalRemediationStatus[];

describe("what released versions have stored", () => {
  it("the statuses of version 0.1.0 are kept", () => assert.ok(VERSIONS.includes("0.1.0")));

  for (const version of VERSIONS) {
    const statuses = statusesOf(version);

    it(`the statuses of version ${version} contain every present state`, () => {
      const phases = new Set(statuses.map(({ phase }) => phase));
      assert.deepEqual(
        [...STATE_NAMES].filter((name) => !phases.has(name)),
        [],
      );
    });

    it(`each status of version ${version} is read as the state that it names`, () => {
      for (const status of statuses) assert.equal(parseState(status).name, status.phase);
    });

    it(`each status of version ${version} leads to an action, a wait or a rest, with a host and without`, () => {
      for (const status of statuses) {
        const base = snapshot({ state: "Resolving" });
        const found = { ...base, state: parseState(status), status };
        const gone = { found: false, reason: "NoTarget", message: "it is gone" } as const;
        for (const given of [found, { ...found, host: gone }]) {
          const decision = decide(given, NOW);
          const acts =
            decision.status !== undefined || decision.effects.length > 0 || decision.nextCheckMs !== undefined;
          assert.ok(acts || status.phase === "Succeeded" || status.phase === "Failed", `${status.phase} rests`);
        }
      }
    });
  }
});

/** The keywords of a schema that our CRDs use. */
interface Schema {
  type: string;
  enum?: string[];
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  [bound: string]: unknown;
}

const BOUNDS_ABOVE = ["maxItems", "maxLength", "maximum", "maxProperties"];
const BOUNDS_BELOW = ["minItems", "minLength", "minimum"];

/** What `newer` accepts and `older` refuses after it has dropped unknown fields. */
function refusals(older: Schema, newer: Schema, path = "status"): string[] {
  const found: string[] = [];
  if (older.type !== newer.type) return [`${path} is ${newer.type}, and was ${older.type}`];
  const admitted = older.enum;
  if (admitted !== undefined) {
    const added = newer.enum?.filter((value) => !admitted.includes(value)) ?? ["anything"];
    found.push(...added.map((value) => `${path} may be ${value}`));
  }
  for (const field of ["pattern", "format"]) {
    if (older[field] !== undefined && older[field] !== newer[field]) found.push(`${path} has another ${field}`);
  }
  const exceeds = (field: string, sign: number): boolean =>
    older[field] !== undefined && !(sign * Number(newer[field] ?? sign * Infinity) <= sign * Number(older[field]));
  found.push(...BOUNDS_ABOVE.filter((field) => exceeds(field, 1)).map((field) => `${path} has a higher ${field}`));
  found.push(...BOUNDS_BELOW.filter((field) => exceeds(field, -1)).map((field) => `${path} has a lower ${field}`));
  for (const field of older.required ?? []) {
    if (newer.required?.includes(field) !== true) found.push(`${path}.${field} may be absent`);
  }
  for (const [name, schema] of Object.entries(older.properties ?? {})) {
    const present = newer.properties?.[name];
    if (present !== undefined) found.push(...refusals(schema, present, `${path}.${name}`));
  }
  for (const field of ["items", "additionalProperties"] as const) {
    const [before, after] = [older[field], newer[field]];
    if (before !== undefined && after !== undefined) found.push(...refusals(before, after, `${path}.${field}`));
  }
  return found;
}

describe("an agent that is rolled back", () => {
  const crd = parse(
    readFileSync(new URL("../../../../deploy/crds/ironfence.io_baremetalremediations.yaml", import.meta.url), "utf8"),
  ) as { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } };
  const present = crd.spec.versions[0]?.schema.openAPIV3Schema.properties?.["status"] ?? assert.fail();

  for (const version of VERSIONS) {
    const released = read(`${version}/status-schema.json`) as Schema;

    it(`an agent that is rolled back to ${version} can store whatever this version has stored`, () => {
      assert.deepEqual(refusals(released, present), []);
    });

    it(`an agent that is rolled back to ${version} knows every state that this version stores`, () => {
      const known = new Set(statusesOf(version).map(({ phase }) => phase));
      assert.deepEqual(
        STATE_NAMES.filter((name) => !known.has(name)),
        [],
      );
    });
  }

  it("an agent that is rolled back cannot store what its schema does not know", () => {
    const broken = structuredClone(present);
    const { attempt, timeline } = broken.properties ?? {};
    attempt?.properties?.["action"]?.enum?.push("Cycle");
    attempt?.required?.pop();
    if (timeline !== undefined) timeline["maxItems"] = 500;
    const found = refusals(present, broken);
    assert.deepEqual(found.toSorted(), [
      "status.attempt.action may be Cycle",
      `status.attempt.${present.properties?.["attempt"]?.required?.at(-1) ?? ""} may be absent`,
      "status.timeline has a higher maxItems",
    ]);
  });
});
