import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { Option } from "../../../src/config/option.ts";
import { BMC_OPTIONS, FENCE_TIMEOUT_OPTION, POWER_TIMEOUT_OPTION } from "../../../src/config/bmc-options.ts";
import { flagName, OptionError } from "../../../src/config/option.ts";
import { resolveRunOptions } from "../../../src/config/resolve-run-options.ts";
import { RUN_OPTIONS } from "../../../src/config/run-options.ts";
import { CLUSTER_OPTIONS } from "../../../src/config/cluster-options.ts";

describe("the parser of the options of `ironfence run`", () => {
  it("the parser of the options of `ironfence run` has a default for everything but the cluster", () => {
    const options = resolveRunOptions({}, {});
    assert.equal(options.namespace, "ironfence-system");
    assert.deepEqual([...options.components], ["detector", "remediator"]);
    assert.deepEqual([...options.families], ["node-health-check"]);
    assert.equal(options.leaderElect, true);
    assert.deepEqual(options.metricsBindAddress, { host: "::", port: 8080 });
    assert.equal(options.kubeconfig, undefined);
  });

  it("the parser of the options of `ironfence run` takes the flag before the environment variable, and the variable before the default", () => {
    const env = { IRONFENCE_LOG_LEVEL: "debug", IRONFENCE_LEASE_NAME: "from-env" };
    const options = resolveRunOptions({ logLevel: "warn" }, env);
    assert.equal(options.logLevel, "warn");
    assert.equal(options.leaseName, "from-env");
  });

  it("the parser of the options of `ironfence run` does not repeat a URL that holds a password", () => {
    assert.throws(
      () => resolveRunOptions({ otlpEndpoint: "https://user:hunter2@collector.example:4318" }, {}),
      ({ message }: Error) => message.includes("must not contain a user or a password") && !message.includes("hunter2"),
    );
  });

  it("the parser of the options of `ironfence run` counts an empty environment variable as absent", () => {
    assert.equal(resolveRunOptions({}, { POD_NAMESPACE: "" }).namespace, "ironfence-system");
  });

  it("the parser of the options of `ironfence run` refuses an empty variable where the agent might act that is to observe", () => {
    assert.throws(() => resolveRunOptions({}, { IRONFENCE_OBSERVE: "" }), /IRONFENCE_OBSERVE: it is set, but empty/);
    assert.equal(resolveRunOptions({ observe: "true" }, { IRONFENCE_OBSERVE: "" }).observe, true);
  });

  it("the parser of the options of `ironfence run` refuses to act under the Lease of an agent that only observes", () => {
    assert.throws(() => resolveRunOptions({ leaseName: "a-observe" }, {}), /--lease-name.*only observe/);
    assert.equal(resolveRunOptions({ leaseName: "a", observe: "true" }, {}).leaseName, "a-observe");
  });

  it("the parser of the options of `ironfence run` refuses an observer without a detector", () => {
    assert.throws(() => resolveRunOptions({ components: "remediator", observe: "true" }, {}), /--observe.*detector/);
  });

  it("the parser of the options of `ironfence run` refuses families that leave a detector alone without any health check", () => {
    const families = "metal3-remediation,bare-metal-host";
    assert.throws(
      () => resolveRunOptions({ components: "detector", families }, {}),
      /--families: the detector serves none of these families/,
    );
    assert.equal(resolveRunOptions({ components: "remediator", families }, {}).families.size, 2);
  });

  it("the parser of the options of `ironfence run` takes 0 for any number if hosts are limited, and else the number", () => {
    const flags = { maxHosts: "0", maxHostsPerCluster: "0", maxHostsPerZone: "7" };
    const { maxHosts, maxHostsPerCluster, maxHostsPerZone } = resolveRunOptions(flags, {});
    assert.deepEqual([maxHosts, maxHostsPerCluster, maxHostsPerZone], [Infinity, Infinity, 7]);
    const defaults = resolveRunOptions({}, {});
    assert.deepEqual([defaults.maxHosts, defaults.maxHostsPerCluster, defaults.maxHostsPerZone], [100, 25, Infinity]);
  });

  const wrong: [string, string][] = [
    ["logLevel", "loud"],
    ["components", "detector,fencer"],
    ["components", ""],
    ["families", "node-health-check,pods"],
    ["leaderElect", "yes"],
    ["namespace", "Not_A_Name"],
    ["metricsBindAddress", "localhost"],
    ["metricsBindAddress", "localhost:99999"],
  ];
  for (const [name, text] of wrong) {
    it(`the parser of the options of \`ironfence run\` refuses ${flagName(name)} ${JSON.stringify(text)} with an error that names the flag and the value`, () => {
      assert.throws(
        () => resolveRunOptions({ [name]: text }, {}),
        (error) =>
          error instanceof OptionError &&
          error.message.startsWith(flagName(name)) &&
          error.message.includes(`"${text}"`),
      );
    });
  }

  it("the parser of the options of `ironfence run` takes clusters with etcd outside of them by their names, and the agent's own as `own`", () => {
    const resolve = (list: string): string[] => [...resolveRunOptions({ externalEtcd: list }, {}).externalEtcd];
    assert.deepEqual(resolve("own, caps/w1"), ["", "caps/w1"]);
    assert.deepEqual([...resolveRunOptions({}, {}).externalEtcd], []);
    assert.throws(() => resolve("w1"), /--external-etcd.*namespace\/name/);
  });

  it("the parser of the options of `ironfence run` reports which of several families it does not know", () => {
    const families = "machine-health-check,baremetalhost";
    assert.throws(() => resolveRunOptions({ families }, {}), /bare-metal-host; "baremetalhost" is not one of them/);
  });

  it("the parser of the options of `ironfence run` names the environment variable if the wrong value came from there", () => {
    assert.throws(
      () => resolveRunOptions({}, { IRONFENCE_LOG_LEVEL: "loud" }),
      /^OptionError: IRONFENCE_LOG_LEVEL: must be/,
    );
  });

  it("the parser of the options of `ironfence run` reads addresses with host, without, in IPv6 form, and 0 for off", () => {
    const addressOf = (text: string) => resolveRunOptions({ metricsBindAddress: text }, {}).metricsBindAddress;
    assert.deepEqual(addressOf("127.0.0.1:0"), { host: "127.0.0.1", port: 0 });
    assert.deepEqual(addressOf("[::1]:9"), { host: "::1", port: 9 });
    assert.deepEqual(addressOf(":9"), { host: "::", port: 9 });
    assert.equal(addressOf("0"), "off");
  });

  it("the page docs/reference/options.md lists each option of `ironfence run` with flag, variable and default", () => {
    const page = readFileSync(new URL("../../../docs/reference/options.md", import.meta.url), "utf8");
    for (const option of Object.values<Option<unknown>>({ ...CLUSTER_OPTIONS, ...RUN_OPTIONS })) {
      const section = `### \`${flagName(option.name)}\`\n\nVariable \`${option.env}\`, ${defaultOf(option)}.\n\n`;
      assert.ok(page.includes(section), `docs/reference/options.md lacks: ${section}`);
    }
  });

  it("the page of the command line contains every option about BMCs with its default", () => {
    const docs = readFileSync(new URL("../../../docs/reference/cli.md", import.meta.url), "utf8");
    for (const option of Object.values<Option<unknown>>(BMC_OPTIONS)) {
      const entry = `- \`${flagName(option.name)}\` (\`${option.env}\`, ${defaultOf(option)}): `;
      assert.ok(docs.includes(entry), `docs/reference/cli.md lacks: ${entry}`);
    }
    for (const option of [POWER_TIMEOUT_OPTION, FENCE_TIMEOUT_OPTION]) {
      assert.ok(docs.includes(`\`${flagName(option.name)}\` (\`$${option.env}\`, ${option.defaultText})`), option.env);
    }
  });
});

/** The default in the notation of the pages. */
function defaultOf({ defaultText }: Option<unknown>): string {
  return defaultText === undefined ? "no default" : `default \`${defaultText}\``;
}
