import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { hasTaint, OUT_OF_SERVICE, readyOf } from "../../hack/e2e/chronicle.ts";
import type { NodeView } from "../../hack/e2e/chronicle.ts";
import type { RunningClusterApi } from "../../hack/e2e/cluster-api-peer.ts";
import { prepareClusterApiPeer, startClusterApi } from "../../hack/e2e/cluster-api-peer.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import type { ObjectView } from "../../hack/e2e/machines.ts";
import { conditionForms, machinePaths } from "../../hack/e2e/machines.ts";
import type { Metal3World } from "../../hack/e2e/metal3-world.ts";
import { startMetal3World } from "../../hack/e2e/metal3-world.ts";
import { applyObject, waitUntilEstablished } from "../../hack/lib/apply.ts";
import type { KubeApi } from "../../hack/lib/kube-api.ts";
import type { HostSpec } from "../../hack/rack/host.ts";

// The MachineHealthCheck and MachineSet controllers of Cluster API, with its CRDs and RBAC, request remediations from
// ironfence. Management and workload cluster are two real API servers, and the hosts belong to a rack. The stories run
// in parallel, each with its own host and health check, since upstream starts one remediation per health check at a
// time.

const WHERE = { version: "v1beta2", namespace: "metal3", cluster: "test1" } as const;
const PATHS = machinePaths(WHERE);
/** Upstream evaluates a health check at least every 15 s. */
const STORY_TIMEOUT_MS = 150_000;
const HOST: Omit<HostSpec, "name"> = { powerOffDelayMs: 1_000, powerOnDelayMs: 1_000, bootMs: 1_000 };
const OURS = { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediationTemplate" };
const METAL3 = { apiVersion: "infrastructure.cluster.x-k8s.io/v1beta2", kind: "Metal3RemediationTemplate" };
/** A template of a vendor that neither side knows. */
const VENDOR = { apiVersion: "vendor.example/v1", kind: "FenceTemplate" };
const TEMPLATES = {
  recovers: OURS,
  returns: OURS,
  fails: OURS,
  metal3: METAL3,
  theirs: VENDOR,
  ours: VENDOR,
};
type Story = keyof typeof TEMPLATES;
const STORIES = Object.keys(TEMPLATES) as Story[];
/** The Machine that its MachineSet must replace. */
const OWNED: Story = "fails";
/** The Machine whose health check ironfence's detector serves at the end. */
const LEFT_TO_US: Story = "ours";
const RIGHTS = "cluster.x-k8s.io/aggregate-to-manager";
const OUR_RIGHTS = "rbac.ext-remediation/aggregate-to-ext-remediation";
/** How long the test checks that the two health check controllers do not conflict. */
const QUIET_MS = 5_000;

void describe("with Cluster API's own controllers, on two real API servers", () => {
  let world: Metal3World;
  let upstream: RunningClusterApi;
  /** Ends the watches if a story fails. */
  const over = new AbortController();

  before(async () => {
    const peer = await prepareClusterApiPeer((line) => void process.stderr.write(`e2e: ${line}\n`), forever());
    const hosts = STORIES.map((name) => ({
      ...HOST,
      name,
      machineLabels: { story: name, nodepool: name === OWNED ? "nodepool-0" : "none" },
    }));
    world = await startMetal3World(WHERE, { machines: hosts }, peer.crds);
    const { api } = world;
    await api.mergePatch(`${PATHS.machineSets}/workers`, { spec: { replicas: 1 } });
    const { namespace } = WHERE;
    await api.create(`/apis/${METAL3.apiVersion}/namespaces/${namespace}/metal3machinetemplates`, {
      apiVersion: METAL3.apiVersion,
      kind: "Metal3MachineTemplate",
      metadata: { name: "workers" },
      spec: { template: { spec: { image: { url: "http://image.example/os.raw" } } } },
    });
    await applyVendor(api);
    for (const name of STORIES) {
      const { apiVersion, kind } = TEMPLATES[name];
      const strategy =
        kind === METAL3.kind
          ? { type: "Reboot", retryLimit: 1, timeoutSeconds: 600 }
          : { type: "Reboot", retryLimit: 0, timeout: "12s" };
      await api.create(`/apis/${apiVersion}/namespaces/${namespace}/${kind.toLowerCase()}s`, {
        apiVersion,
        kind,
        metadata: { name },
        spec: { template: { spec: { strategy } } },
      });
      await api.create(PATHS.healthChecks, {
        apiVersion: `cluster.x-k8s.io/${WHERE.version}`,
        kind: "MachineHealthCheck",
        metadata: {
          name,
          ...(name === LEFT_TO_US && { annotations: { "cluster.x-k8s.io/paused": "ironfence.io" } }),
        },
        spec: {
          clusterName: WHERE.cluster,
          selector: { matchLabels: { story: name } },
          checks: {
            unhealthyNodeConditions: ["Unknown", "False"].map((status) => ({
              type: "Ready",
              status,
              timeoutSeconds: 1,
            })),
          },
          remediation: { templateRef: { apiVersion, kind, name } },
        },
      });
    }
    await world.startAgent(["--families=metal3-remediation,bare-metal-host"]);
    upstream = await startClusterApi(peer, world.management);
    await explain("upstream finds every Machine healthy", async () => {
      const checks = await api.list<ObjectView>(PATHS.healthChecks);
      const isDone = ({ metadata, status }: ObjectView): boolean =>
        status?.currentHealthy === 1 || metadata.name === LEFT_TO_US;
      return checks.length === STORIES.length && checks.every(isDone);
    });
  });
  after(async () => {
    over.abort();
    await upstream?.stop();
    await world?.stop();
  });

  const explain = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
    eventually(what, STORY_TIMEOUT_MS, ask, async () => {
      const kinds = [PATHS.machines, PATHS.healthChecks, PATHS.remediations, PATHS.metal3Remediations];
      const objects = await Promise.all(kinds.map((kind) => world.api.list<ObjectView>(kind)));
      const logs = [...world.agents.map((agent) => agent.log()), upstream?.log()];
      return [...objects.flat().map((object) => JSON.stringify(object)), ...logs].join("\n");
    });
  const requestPath = (story: Story): string => {
    const { apiVersion, kind } = TEMPLATES[story];
    const plural = `${kind.replace(/Template$/, "").toLowerCase()}s`;
    return `/apis/${apiVersion}/namespaces/${WHERE.namespace}/${plural}/${story}`;
  };
  const requestOf = (story: Story): Promise<ObjectView | undefined> => world.api.find<ObjectView>(requestPath(story));
  const machineOf = (name: string): Promise<ObjectView> => world.api.get<ObjectView>(`${PATHS.machines}/${name}`);
  const nodeOf = (name: string): Promise<NodeView> => world.workload.api.get<NodeView>(`/api/v1/nodes/${name}`);
  const hostMarksOf = async (name: string): Promise<string[]> => {
    const { metadata } = await world.api.get<ObjectView>(`${PATHS.hosts}/${name}`);
    return Object.keys(metadata.annotations ?? {}).filter((key) =>
      /^reboot\.metal3\.io\/|^ironfence\.io\/owner$/.test(key),
    );
  };
  const ordersOf = (name: string): string[] => {
    const started = world.rack.host(name).orders.filter(({ outcome }) => outcome === "Started");
    return started.map(({ type }) => type);
  };
  /** Waits until upstream has found the Machine healthy and deleted its request, and the remediation is gone. */
  const isBack = (story: Story): Promise<unknown> =>
    explain(`${story} is healthy, and nothing is left of its remediation`, async () => {
      const [healthy] = conditionForms(await machineOf(story), "HealthCheckSucceeded");
      const node = await nodeOf(story);
      return (
        healthy?.status === "True" &&
        readyOf(node) === "True" &&
        (node.spec.taints ?? []).length === 0 &&
        (await requestOf(story)) === undefined &&
        (await hostMarksOf(story)).length === 0
      );
    });

  void describe("as the remediator that they ask", { concurrency: true }, () => {
    void test("a request of upstream's is served: the host is fenced, the node comes back, and upstream deletes it", async () => {
      const name = "recovers";
      const watching = new AbortController();
      const powerWhenTainted: string[] = [];
      const nodes = world.workload.api.watch<NodeView>(
        `/api/v1/nodes?fieldSelector=metadata.name=${name}`,
        ({ object }) => {
          if (hasTaint(object, OUT_OF_SERVICE)) powerWhenTainted.push(world.rack.host(name).power);
        },
        AbortSignal.any([watching.signal, over.signal]),
      );
      const machine = await machineOf(name);
      world.rack.host(name).hang();
      const request = await explain("a request", () => requestOf(name));
      assert.deepEqual(request.metadata.annotations, {
        "cluster.x-k8s.io/cloned-from-name": name,
        "cluster.x-k8s.io/cloned-from-groupkind": "BareMetalRemediationTemplate.ironfence.io",
      });
      assert.deepEqual(request.metadata.ownerReferences, [
        { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name, uid: machine.metadata.uid },
      ]);
      await explain("upstream waits for it", async () => {
        const [waiting] = conditionForms(await machineOf(name), "ExternallyRemediated");
        return waiting?.status === "False" && waiting.reason === "WaitingForRemediation";
      });
      await isBack(name);
      watching.abort();
      await nodes;
      assert.ok(powerWhenTainted.length > 0, "the out-of-service taint was seen");
      assert.deepEqual(new Set(powerWhenTainted), new Set(["Off"]));
      assert.deepEqual(ordersOf(name), ["ForceOff", "On"]);
      assert.equal((await machineOf(name)).metadata.uid, machine.metadata.uid);
    });

    void test("a node that is back before its power-off keeps its power: upstream withdraws its request", async () => {
      const name = "returns";
      // Metal3's operator ignores a paused host, so the power-off waits.
      const pause = (value: string | null): Promise<unknown> =>
        world.api.mergePatch(`${PATHS.hosts}/${name}`, {
          metadata: { annotations: { "baremetalhost.metal3.io/paused": value } },
        });
      await pause("");
      world.rack.host(name).hang();
      await explain("a request", () => requestOf(name));
      world.rack.host(name).resume();
      await isBack(name);
      await pause(null);
      assert.deepEqual(ordersOf(name), []);
    });

    void test("a Machine that no reboot helps is replaced by upstream's MachineSet at ironfence's request", async () => {
      const name = "fails";
      const machine = await machineOf(name);
      const seen: string[] = [];
      const watching = new AbortController();
      const machines = world.api.watch<ObjectView>(
        `${PATHS.machines}?fieldSelector=metadata.name=${name}`,
        ({ object }) => {
          const forms = conditionForms(object, "OwnerRemediated");
          if (forms.some((form) => form?.status === "False")) seen.push(...ordersOf(name));
        },
        AbortSignal.any([watching.signal, over.signal]),
      );
      world.rack.host(name).failDisk();
      await explain("upstream deletes the Machine", async () => {
        const [said] = conditionForms(await machineOf(name), "OwnerRemediated");
        return said?.reason === "MachineDeleting";
      });
      watching.abort();
      await machines;
      // Only after one reboot.
      assert.deepEqual(seen.slice(0, 2), ["ForceOff", "On"]);
      // The Machine controller of Cluster API does not run here. It would remove the finalizers.
      await world.api.mergePatch(`${PATHS.machines}/${name}`, { metadata: { finalizers: null } });
      const replacement = await explain("another one", async () => {
        const all = await world.api.list<ObjectView>(`${PATHS.machines}?labelSelector=nodepool=nodepool-0`);
        return all.find(({ metadata }) => metadata.uid !== machine.metadata.uid);
      });
      assert.match(replacement.metadata.name, /^workers-/);
      await explain("nothing is left of the request", async () => {
        return (await requestOf(name)) === undefined && (await hostMarksOf(name)).length === 0;
      });
      assert.deepEqual(ordersOf(name), ["ForceOff", "On"]);
    });

    void test("the agent serves a Metal3Remediation that upstream created, instead of Metal3's controller", async () => {
      const name = "metal3";
      world.rack.host(name).hang();
      const served = await explain("a request that is served", async () => {
        const request = await requestOf(name);
        return request?.status?.phase !== undefined && request;
      });
      assert.deepEqual(served.spec, { strategy: { type: "Reboot", retryLimit: 1, timeoutSeconds: 600 } });
      await isBack(name);
      assert.deepEqual(ordersOf(name), ["ForceOff", "On"]);
    });
  });

  void test("a health check of the agent next to upstream's requests the same from a vendor's remediator, and leaves upstream's requests alone", async () => {
    world.rack.host("theirs").hang();
    const theirs = await explain("upstream's request", () => requestOf("theirs"));
    for (const agent of world.agents) await agent.stop();
    await world.startAgent(["--components=detector", "--families=machine-health-check"]);
    world.rack.host("ours").hang();
    const ours = await explain("our request", () => requestOf("ours"));
    const [theirMachine, ourMachine] = await Promise.all(
      (["theirs", "ours"] as const).map((name) =>
        explain(`${name} is waited for`, async () => {
          const machine = await machineOf(name);
          return conditionForms(machine, "ExternallyRemediated")[0]?.status === "False" && machine;
        }),
      ),
    );
    assert.ok(theirMachine !== undefined && ourMachine !== undefined);
    assert.deepEqual(essence(ours, ourMachine), essence(theirs, theirMachine));
    for (const type of ["HealthCheckSucceeded", "ExternallyRemediated"]) {
      // Messages are for users and are not compared. In 1.14 they also contain the node's reason, which the agent does
      // not keep.
      const said = (machine: ObjectView): object[] =>
        conditionForms(machine, type).map((form) => ({
          status: form?.status,
          reason: form?.reason,
          severity: form?.severity,
        }));
      assert.deepEqual(said(ourMachine), said(theirMachine), type);
    }

    const versions = async (): Promise<string[]> => {
      const checks = await world.api.list<ObjectView & { metadata: { resourceVersion: string } }>(PATHS.healthChecks);
      return checks.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
    };
    await explain("both controllers have reported their results", async () => {
      const before = await versions();
      await sleep(QUIET_MS);
      return JSON.stringify(before) === JSON.stringify(await versions());
    });
    world.rack.host("theirs").resume();
    world.rack.host("ours").resume();
    for (const name of ["theirs", "ours"] as const) await isBack(name);
    assert.deepEqual([...ordersOf("theirs"), ...ordersOf("ours")], []);
  });
});

/** A signal that is never aborted, because builds have their own deadline. */
const forever = (): AbortSignal => new AbortController().signal;

/** Applies the kinds of a vendor, with a role that both health check controllers aggregate. */
async function applyVendor(api: KubeApi): Promise<void> {
  const [group = "", version = ""] = VENDOR.apiVersion.split("/");
  const plurals = ["fences", "fencetemplates"];
  for (const [index, kind] of ["Fence", "FenceTemplate"].entries()) {
    const plural = plurals[index] ?? "";
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    await applyObject(api, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
        versions: [{ name: version, served: true, storage: true, schema }],
      },
    });
    await waitUntilEstablished(api, `${plural}.${group}`);
  }
  await applyObject(api, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "vendor-fence", labels: { [RIGHTS]: "true", [OUR_RIGHTS]: "true" } },
    rules: [{ apiGroups: [group], resources: plurals, verbs: ["get", "list", "watch", "create", "delete"] }],
  });
}

/** A request without what always differs: its name, the name of its Machine, and fields of the API server. */
function essence({ apiVersion, metadata, spec }: ObjectView, machine: ObjectView): object {
  const { name, labels, annotations, finalizers, ownerReferences } = metadata;
  const { uid } = machine.metadata;
  const text = JSON.stringify({ apiVersion, name, labels, annotations, finalizers, ownerReferences, spec });
  return JSON.parse(text.replaceAll(uid, "UID").replaceAll(`"${name}"`, '"NAME"')) as object;
}
