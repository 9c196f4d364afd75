import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { stringify, parse } from "yaml";
import { eventually } from "../../hack/e2e/eventually.ts";
import type { RackWorld } from "../../hack/e2e/rack-world.ts";
import { startRackWorld } from "../../hack/e2e/rack-world.ts";
import { ALL_SIMULATED } from "../../hack/e2e/simulated-hosts.ts";
import { TARGETS } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyManifests, applyObject, readManifests, waitUntilEstablished } from "../../hack/lib/apply.ts";
import type { Problem } from "../../src/cli/status/objects/object-problems.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { cli } from "../integration/cli-fixture.ts";

// Makes each mistake of docs/how-to/mistakes.md. It must be reported where the page says, within the given seconds, and
// the advice must fix it. All mistakes share one control plane and one agent, so each test restores the original state.

const CHECKS = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks";
const TEMPLATE = { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediationTemplate" };
const WORKERS = ["worker-1", "worker-2", "worker-3"];
/** Time from the fix until `status` no longer shows the mistake. A target is probed at most every 5 s. */
const MENDED_S = 20;

interface Row {
  mistake: string;
  /** Kind and reason by which `ironfence status` reports the mistake. */
  kind: string;
  reason: string;
  withinS: number;
}

/** The mistakes come from the page that users read. */
const ROWS = readRows();

function readRows(): Map<string, Row> {
  const page = readFileSync(repositoryPath("docs/how-to/mistakes.md"), "utf8");
  const items = [...page.replaceAll("\n  ", " ").matchAll(/^- \*\*([^*]+)\*\*: `(\w+)`: `(\w+)` within (\d+) s\./gm)];
  return new Map(
    items.map(([, mistake = "", kind = "", reason = "", seconds]) => [
      mistake,
      { mistake, kind, reason, withinS: Number(seconds) },
    ]),
  );
}

void describe("each of twenty mistakes is reported where and when the page says so, and its advice fixes it", () => {
  let world: RackWorld;
  let other: KubeMock;
  const played = new Set<string>();

  const status = async (...flags: string[]): Promise<Problem[]> => {
    const inputs = ["status", "--problems", "-o", "json", "--kubeconfig", world.controlPlane.kubeconfig, ...flags];
    const { out, err, code } = await cli(inputs);
    assert.equal(code, 0, err);
    return (JSON.parse(out) as { problems: Problem[] }).problems;
  };

  /** Plays one mistake. @param options.mend is given the sentence. */
  const play = (
    mistake: string,
    options: {
      name?: string;
      says: RegExp;
      make: () => Promise<unknown>;
      mend: (message: string) => Promise<unknown>;
      mendedS?: number;
    },
  ): void => {
    const { name, says, make, mend, mendedS = MENDED_S } = options;
    void test(
      `the mistake "${mistake}" is reported in time, and its advice fixes it`,
      { timeout: 240_000 },
      async () => {
        const row = ROWS.get(mistake);
        assert.ok(row, `docs/how-to/mistakes.md has no item for: ${mistake}`);
        played.add(mistake);
        const find = async (): Promise<Problem | undefined> =>
          (await status()).find(
            (problem) =>
              problem.kind === row.kind &&
              problem.reason === row.reason &&
              (name === undefined || problem.name === name),
          );
        await make();
        const what = `${row.kind} ${name ?? ""} says ${row.reason}`;
        const problems = async (): Promise<string> => JSON.stringify(await status(), undefined, 1);
        const { message } = await eventually(what, row.withinS * 1_000, find, problems);
        assert.match(message, says);
        await mend(message);
        const gone = async (): Promise<boolean> => (await find()) === undefined;
        await eventually(`${what} no longer`, mendedS * 1_000, gone, problems);
      },
    );
  };

  const target = (node: string, device: object = {}, named: { name?: string; namespace?: string } = {}): Manifest => ({
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    metadata: { name: node, namespace: NAMESPACE, ...named },
    spec: {
      nodeName: node,
      devices: [
        {
          address: world.hosts.address(node),
          credentialsSecretRef: { name: "bmc" },
          tls: { caSecretRef: { name: "bmc" } },
          ...device,
        },
      ],
    },
  });
  const patchTarget = (node: string, spec: object): Promise<unknown> =>
    world.api.mergePatch(`${TARGETS}/${node}`, { spec });
  const patchDevice = (node: string, device: object): Promise<unknown> =>
    patchTarget(node, { devices: (target(node, device)["spec"] as { devices: object[] }).devices });
  const secret = (name: string, data: object): Promise<unknown> =>
    applyObject(world.api, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: NAMESPACE, annotations: { "ironfence.io/allowed-addresses": ALL_SIMULATED } },
      stringData: data,
    });
  const check = (name: string, spec: object): Promise<unknown> =>
    applyObject(world.api, {
      apiVersion: "remediation.medik8s.io/v1alpha1",
      kind: "NodeHealthCheck",
      metadata: { name },
      spec: {
        selector: { matchLabels: { role: "worker" } },
        minHealthy: 1,
        remediationTemplate: { ...TEMPLATE, namespace: NAMESPACE, name: "reboot" },
        ...spec,
      },
    });
  const patchCheck = (name: string, spec: object): Promise<unknown> =>
    world.api.mergePatch(`${CHECKS}/${name}`, { spec });
  const command = async (...inputs: string[]): Promise<void> => {
    const { err, code } = await cli([...inputs, "--kubeconfig", world.controlPlane.kubeconfig]);
    assert.equal(code, 0, err);
  };

  before(async () => {
    other = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    world = await startRackWorld([
      { name: "cp-1", labels: { "node-role.kubernetes.io/control-plane": "" } },
      ...WORKERS.map((name) => ({ name, labels: { role: "worker" }, bootMs: 1_000 })),
    ]);
    await applyObject(world.api, {
      ...TEMPLATE,
      metadata: { name: "reboot", namespace: NAMESPACE },
      spec: { template: { spec: { strategy: { type: "Reboot" } } } },
    });
  });
  after(async () => {
    await world?.stop();
    await other?.close();
  });

  play("No agent running", {
    says: /start one with your installation \(deploy\/kustomize or the Helm chart\), or `ironfence run`/,
    make: () => Promise.resolve(),
    mend: () => world.startAgent(["--families", "node-health-check,bare-metal-host"]),
    mendedS: 40,
  });

  void test("an agent reports nothing about targets before anything is wrong", async () => {
    const ready = async (): Promise<boolean> => (await status()).length === 0;
    await eventually("no problem", 30_000, ready, async () => JSON.stringify(await status()));
  });

  play("Wrong password", {
    name: `${NAMESPACE}/worker-1`,
    says: /refused user or password: correct the Secret of spec\.devices\[0\]\.credentialsSecretRef/,
    make: async () => {
      await secret("bmc-1", { ...world.hosts.login, password: "not-the-password" });
      await patchDevice("worker-1", { credentialsSecretRef: { name: "bmc-1" } });
    },
    mend: () => secret("bmc-1", world.hosts.login),
  });

  play("Wrong address", {
    name: `${NAMESPACE}/worker-1`,
    says: /ECONNREFUSED 127\.0\.0\.1:1: correct spec\.devices\[0\]\.address/,
    make: () => patchDevice("worker-1", { address: "redfish://127.0.0.1:1/redfish/v1/Systems/1" }),
    mend: () => patchDevice("worker-1", {}),
  });

  play("Self-signed certificate", {
    name: `${NAMESPACE}/worker-1`,
    says: /SHA-256 [0-9a-f]{64} .*spec\.devices\[0\]\.tls; compare the SHA-256/,
    make: () => patchDevice("worker-1", { tls: { caSecretRef: null } }),
    mend: (message) => {
      const sha256Fingerprint = /SHA-256 ([0-9a-f]{64})/.exec(message)?.[1];
      assert.ok(sha256Fingerprint, message);
      return patchDevice("worker-1", { tls: { sha256Fingerprint } });
    },
  });

  play("Secret missing", {
    name: `${NAMESPACE}/worker-1`,
    says: /Secret ironfence-system\/bmc-9/,
    make: () => patchDevice("worker-1", { credentialsSecretRef: { name: "bmc-9" } }),
    mend: () => secret("bmc-9", world.hosts.login),
  });

  play("Node of a target misspelt", {
    name: `${NAMESPACE}/worker-1`,
    says: /the cluster has no node wroker-1: did you mean worker-1\? Correct spec\.nodeName/,
    make: () => patchTarget("worker-1", { nodeName: "wroker-1" }),
    mend: (message) => patchTarget("worker-1", { nodeName: /did you mean ([\w-]+)\?/.exec(message)?.[1] }),
  });

  play("Target in the wrong namespace", {
    name: "default/worker-1",
    says: /the agent reads FencingTargets of namespace ironfence-system only/,
    make: async () => {
      await world.api.delete(`${TARGETS}/worker-1`);
      await applyObject(world.api, target("worker-1", {}, { namespace: "default" }));
    },
    mend: async () => {
      await applyObject(world.api, target("worker-1"));
      await world.api.delete("/apis/ironfence.io/v1alpha1/namespaces/default/fencingtargets/worker-1");
    },
  });

  play("Two targets for one node", {
    name: `${NAMESPACE}/worker-2`,
    says: /FencingTarget ironfence-system\/worker-2-again names node worker-2 as well.*delete or correct one of them/,
    make: () => applyObject(world.api, target("worker-2", {}, { name: "worker-2-again" })),
    mend: () => world.api.delete(`${TARGETS}/worker-2-again`),
  });

  play("Health check that matches nothing", {
    name: "workers",
    says: /spec\.selector matches no node.*kubectl get nodes --show-labels/,
    make: () => check("workers", { selector: { matchLabels: { role: "wroker" } } }),
    mend: () => patchCheck("workers", { selector: { matchLabels: { role: "worker" } } }),
  });

  play("Health check that matches everything", {
    name: "workers",
    says: /matches all 4 nodes.*\(cp-1\).*key node-role\.kubernetes\.io\/control-plane and operator DoesNotExist/,
    make: () =>
      patchCheck("workers", {
        selector: { matchLabels: null, matchExpressions: [{ key: "example.com/none", operator: "DoesNotExist" }] },
      }),
    mend: () =>
      patchCheck("workers", {
        selector: { matchExpressions: [{ key: "node-role.kubernetes.io/control-plane", operator: "DoesNotExist" }] },
      }),
  });

  play("Threshold too high", {
    name: "workers",
    says: /at least 3 of 3 nodes must be healthy.*lower spec\.minHealthy/,
    make: () => patchCheck("workers", { minHealthy: "100%" }),
    mend: () => patchCheck("workers", { minHealthy: "51%" }),
  });

  play("Template in the wrong namespace", {
    name: "workers",
    says: /default\/reboot not found: namespace ironfence-system has it; correct the template's namespace/,
    make: () => patchCheck("workers", { remediationTemplate: { namespace: "default" } }),
    mend: (message) =>
      patchCheck("workers", { remediationTemplate: { namespace: /namespace ([\w-]+) has it/.exec(message)?.[1] } }),
  });

  play("Kind of a template misspelt", {
    name: "workers",
    says: /serves no BareMetalRemediatonTemplate.*did you mean BareMetalRemediationTemplate\?/,
    make: () => patchCheck("workers", { remediationTemplate: { kind: "BareMetalRemediatonTemplate" } }),
    mend: (message) =>
      patchCheck("workers", { remediationTemplate: { kind: /did you mean (\w+)\?/.exec(message)?.[1] } }),
  });

  play("Kind of a template not installed", {
    name: "workers",
    says: /serves no SelfNodeRemediationTemplate of self-node-remediation\.medik8s\.io\/v1alpha1: install the remediator/,
    make: () =>
      patchCheck("workers", {
        remediationTemplate: {
          apiVersion: "self-node-remediation.medik8s.io/v1alpha1",
          kind: "SelfNodeRemediationTemplate",
        },
      }),
    mend: () => patchCheck("workers", { remediationTemplate: TEMPLATE }),
  });

  play("Lone control plane node", {
    name: "control-plane",
    says: /cp-1 is the only control plane node.*leave it out of spec\.selector/,
    make: () =>
      check("control-plane", {
        selector: { matchExpressions: [{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }] },
      }),
    mend: () => world.api.delete(`${CHECKS}/control-plane`),
  });

  play("Maintenance forgotten", {
    name: `${NAMESPACE}/worker-3`,
    says: /node worker-3 is in maintenance.*set spec\.maintenance to false/,
    make: () => patchTarget("worker-3", { maintenance: true }),
    mend: () => patchTarget("worker-3", { maintenance: false }),
  });

  play("Pause forgotten", {
    says: /paused by .* since .*rack 4.*end the pause with ironfence resume/,
    make: () => command("pause", "--reason", "rack 4 is being rewired"),
    mend: () => command("resume"),
  });

  play("Our CRDs missing", {
    says: /does not serve BareMetalRemediation:.*apply your installation: kubectl apply --server-side -k deploy\/kustomize/,
    make: () =>
      world.api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/baremetalremediations.ironfence.io"),
    mend: () => applyManifests(world.api, repositoryPath("deploy/crds")),
  });

  play("Permissions of a family missing", {
    name: `${NAMESPACE}/worker-1`,
    says: /cannot read BareMetalHosts.*apply deploy\/families\/bare-metal-host/,
    make: async () => {
      for (const file of ["metal3.io", "infrastructure.cluster.x-k8s.io"]) {
        for (const crd of await readManifests(repositoryPath(`hack/foreign-crds/${file}.yaml`))) {
          await applyObject(world.api, crd);
          await waitUntilEstablished(world.api, crd.metadata.name);
        }
      }
    },
    mend: () => applyManifests(world.api, repositoryPath("deploy/families/bare-metal-host")),
    mendedS: 90,
  });

  void test("Wrong kubeconfig context", async () => {
    const row = ROWS.get("Wrong kubeconfig context");
    assert.ok(row);
    played.add(row.mistake);
    const right = parse(readFileSync(world.controlPlane.kubeconfig, "utf8")) as Kubeconfig;
    const wrong = parse(other.kubeconfig) as Kubeconfig;
    const file = join(world.controlPlane.folder, "two-contexts");
    writeFileSync(file, stringify(merge({ right, wrong })));
    const problems = async (context: string): Promise<Problem[]> => {
      const { out, code, err } = await cli([
        "status",
        "--problems",
        "-o",
        "json",
        "--kubeconfig",
        file,
        "--context",
        context,
      ]);
      assert.equal(code, 0, err);
      return (JSON.parse(out) as { problems: Problem[] }).problems;
    };
    const startMs = performance.now();
    const said = (await problems("wrong")).find(({ kind, reason }) => kind === row.kind && reason === row.reason);
    assert.match(
      said?.message ?? "",
      /\(context wrong of .*\) does not serve .*if this is the wrong cluster, choose another with --context/,
    );
    const unknown = await cli(["status", "--kubeconfig", file, "--context", "wronk"]);
    assert.match(unknown.err, /has no context wronk: .*\(there are: right, wrong\)/);
    assert.ok(performance.now() - startMs < row.withinS * 1_000);
    assert.ok((await problems("right")).every(({ kind }) => kind !== row.kind));
  });

  void test("nothing is reported once all mistakes are fixed, and a node that stops answering is fenced", async () => {
    await eventually(
      "no problem",
      30_000,
      async () => (await status()).length === 0,
      async () => JSON.stringify(await status()),
    );
    await patchCheck("workers", {
      unhealthyConditions: [
        { type: "Ready", status: "Unknown", duration: "1s" },
        { type: "Ready", status: "False", duration: "1s" },
      ],
    });
    world.rack.host("worker-1").hang();
    await eventually(
      "worker-1 is powered off",
      90_000,
      () => Promise.resolve(world.rack.host("worker-1").power === "Off"),
      async () => {
        const { out } = await cli(["explain", "node", "worker-1", "--kubeconfig", world.controlPlane.kubeconfig]);
        return `${out}\n${JSON.stringify(await status())}`;
      },
    );
  });

  void test("the page has no mistake that is not played", () => {
    assert.deepEqual([...ROWS.keys()].toSorted(), [...played].toSorted());
    assert.equal(ROWS.size, 20);
  });
});

interface Kubeconfig {
  clusters: { name: string; cluster: object }[];
  users: { name: string; user: object }[];
}

/** Merges several kubeconfigs into one, with a context for each. */
function merge(files: Readonly<Record<string, Kubeconfig>>): object {
  const entries = Object.entries(files);
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: entries.map(([name, { clusters }]) => ({ name, cluster: clusters[0]?.cluster })),
    users: entries.map(([name, { users }]) => ({ name, user: users[0]?.user })),
    contexts: entries.map(([name]) => ({ name, context: { cluster: name, user: name } })),
  };
}
