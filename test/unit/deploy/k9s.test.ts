import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parse } from "yaml";

// Compares deploy/k9s/plugins.yaml with the fields of a plugin in k9s. k9s refuses the whole file if there is an
// unknown field.

const FIELDS: Readonly<Record<string, "string" | "boolean" | "strings">> = {
  shortCut: "string",
  override: "boolean",
  description: "string",
  confirm: "boolean",
  dangerous: "boolean",
  scopes: "strings",
  command: "string",
  background: "boolean",
  overwriteOutput: "boolean",
  args: "strings",
};
const REQUIRED = ["shortCut", "description", "scopes", "command"];
/** The variables that k9s replaces. It cannot resolve others. */
const VARIABLES = new Set(["NAME", "NAMESPACE", "CONTEXT", "CLUSTER", "USER", "KUBECONFIG"]);

type Plugin = Readonly<Record<string, unknown>> & { args: readonly string[]; shortCut: string };

const file = parse(readFileSync(new URL("../../../deploy/k9s/plugins.yaml", import.meta.url), "utf8")) as {
  plugins: Record<string, Plugin>;
};
const plugins = Object.entries(file.plugins);

function isOfType(value: unknown, type: string): boolean {
  if (type !== "strings") return typeof value === type;
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

describe("the plugins for k9s", () => {
  it("the plugins for k9s have every field that k9s requires and no unknown field", () => {
    assert.deepEqual(Object.keys(file), ["plugins"]);
    assert.ok(plugins.length >= 2);
    for (const [name, plugin] of plugins) {
      for (const field of REQUIRED) assert.ok(plugin[field] !== undefined, `${name} lacks ${field}`);
      for (const [field, value] of Object.entries(plugin)) {
        assert.ok(isOfType(value, FIELDS[field] ?? "unknown"), `${name}: ${field}`);
      }
    }
  });

  it("the plugins for k9s are each on a key of their own", () => {
    const keys = plugins.map(([, { shortCut }]) => shortCut);
    assert.equal(new Set(keys).size, keys.length);
    for (const key of keys) assert.match(key, /^(?:Shift|Ctrl|Alt)-[A-Z]$/);
  });

  it("the plugins for k9s quote each variable for the shell, and use those alone that k9s knows", () => {
    for (const [name, { args }] of plugins) {
      const used = args.flatMap((text) => [...text.matchAll(/(.?)\$(\w+)(.?)/g)]);
      assert.ok(used.length >= 2, name);
      for (const [all, before, variable = "", behind] of used) {
        assert.ok(VARIABLES.has(variable), `${name}: ${variable}`);
        assert.deepEqual([before, behind], ['"', '"'], `${name}: ${all}`);
      }
    }
  });
});
