import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stringify } from "yaml";
import { BlockYamlError, parseBlockYaml } from "../../../src/clusters/block-yaml.ts";
import { parseWorkloadKubeconfig } from "../../../src/clusters/kubeconfig-secret.ts";

/** As long as a kubeconfig may be. */
const LENGTH = 256 * 1024;
/** The maximum time for a text on a busy machine. An earlier parser took minutes for some of these. */
const WITHIN_MS = 2_000;

const plain = (text: string): unknown => JSON.parse(JSON.stringify(parseBlockYaml(text)));

describe("block YAML", () => {
  it("block YAML is read as kubectl and Cluster API write it", () => {
    const text = [
      "apiVersion: v1",
      "clusters:",
      "- cluster:",
      "    certificate-authority-data: LS0tLS1=",
      "    server: https://10.0.0.7:6443",
      "  name: c",
      "contexts:",
      "  - context: # comment",
      "      cluster: 'c''s'",
      '      user: "u\\n"',
      "    name: u@c",
      "",
      "# another comment",
      "current-context: u@c",
      "preferences: {}",
      "extensions: []",
      "nothing:",
      "flag: true",
      "data: |",
      "  aaa",
      "  bbb",
      "last: >-",
      "  ccc",
      "  ddd",
    ].join("\n");
    assert.deepEqual(plain(text), {
      apiVersion: "v1",
      clusters: [{ cluster: { "certificate-authority-data": "LS0tLS1=", server: "https://10.0.0.7:6443" }, name: "c" }],
      contexts: [{ context: { cluster: "c's", user: "u\n" }, name: "u@c" }],
      "current-context": "u@c",
      preferences: {},
      extensions: [],
      nothing: null,
      flag: true,
      data: "aaa\nbbb",
      last: "ccc ddd",
    });
  });

  it("block YAML is read as another writer lays it out", () => {
    const value = { a: { b: [{ c: "d", e: ["f", "g"] }, { h: { i: "j k" } }] }, l: "m: n", o: "", p: [["q"]] };
    assert.deepEqual(plain(stringify(value)), value);
    assert.deepEqual(plain(stringify(value, { indentSeq: false })), value);
    assert.deepEqual(plain(`---\r\n${stringify(value).replaceAll("\n", "\r\n")}`), value);
  });

  for (const [what, text] of [
    ["a flow collection", "a: {b: c}"],
    ["an anchor", "a: &b c"],
    ["an alias", "a: *b"],
    ["a tag", "a: !!str b"],
    ["an explicit key", "? a\n: b"],
    ["a second document", "a: b\n---\nc: d"],
    ["a key that occurs twice", "a: b\na: c"],
    ["a tab", "a:\n\tb: c"],
    ["a quote that does not end", 'a: "b'],
    ["a line without a parent", "a: b\n  c: d"],
    ["lists nested too deep", `${"- ".repeat(40)}a`],
  ] as const) {
    it(`block YAML with ${what} is refused, with the number of the line and not its text`, () => {
      assert.throws(
        () => parseBlockYaml(text),
        (error: unknown) => {
          assert.ok(error instanceof BlockYamlError);
          assert.match(error.message, /^line \d+ /);
          return true;
        },
      );
    });
  }

  it("block YAML gives no object another prototype", () => {
    const read = parseBlockYaml("__proto__:\n  polluted: yes\nconstructor: x");
    assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
    assert.deepEqual(Object.keys(read as object), ["__proto__", "constructor"]);
  });
});

describe("a kubeconfig that a tenant has made slow to read", () => {
  const filled = (unit: string): string => unit.repeat(Math.ceil(LENGTH / unit.length)).slice(0, LENGTH);
  const texts: Record<string, string> = {
    "a flow mapping": `{${filled("a,").slice(2)}}`,
    "brackets without end": filled("["),
    "braces without end": filled("{"),
    "JSON in JSON": filled('{"a":'),
    commas: `[${filled(",").slice(2)}]`,
    keys: Array.from({ length: LENGTH / 9 }, (_, index) => `k${index}: 1`)
      .join("\n")
      .slice(0, LENGTH),
    "one key": filled("a: 1\n"),
    "lists in lists": filled("- "),
    dashes: filled("-\n"),
    quotes: filled("'"),
    "escaped quotes": `a: "${filled('\\"').slice(5)}`,
    spaces: `a:${filled(" ").slice(2)}`,
    "a word": filled("a"),
    colons: filled(": "),
    comments: filled("#\n"),
    "deeper and deeper": Array.from({ length: 700 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
    "a block": `a: |\n${filled(" b\n").slice(5)}`,
  };
  for (const [what, text] of Object.entries(texts)) {
    it(`a kubeconfig that a tenant has made slow to read, with ${what}, is refused at once`, () => {
      // CPU time, since a busy machine takes longer for the same parse.
      const started = process.cpuUsage();
      assert.throws(() => parseWorkloadKubeconfig(text));
      const { user, system } = process.cpuUsage(started);
      assert.ok((user + system) / 1_000 < WITHIN_MS, `${user + system} µs`);
    });
  }
});
