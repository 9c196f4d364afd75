import assert from "node:assert/strict";
import { applyObject } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import type { Seen } from "./chronicle.ts";
import { eventually } from "./eventually.ts";
import type { PodView } from "./workload.ts";

// Creates, on one node, pods of every kind that a release treats differently.

const PODS = "/api/v1/namespaces/default/pods";
const READY_TIMEOUT_MS = 60_000;
const containers = [{ name: "main", image: "fake" }];

/** The pods on one node in addition to a database. */
export interface PodsOfAllKinds {
  /** Asserts what the release of the node has done to each pod. */
  assertReleased(seen: readonly Seen<PodView>[]): Promise<void>;
  remove(): Promise<void>;
}

/**
 * Runs a pod of a DaemonSet, one of a Job, a mirror pod and one that tolerates every taint on a node, and forbids the
 * eviction of the pods labelled `app: <database>`.
 */
export async function deployPodsOfAllKinds(api: KubeApi, node: string, database: string): Promise<PodsOfAllKinds> {
  const namespace = "default";
  const template = (app: string, spec: object = {}): object => ({
    metadata: { labels: { app } },
    spec: { containers, ...spec },
  });
  const preference = { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [node] }] };
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] };
  const objects = [
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { namespace, name: "no-eviction" },
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: database } } },
    },
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { namespace, name: "daemon" },
      spec: { selector: { matchLabels: { app: "daemon" } }, template: template("daemon") },
    },
    {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { namespace, name: "job" },
      spec: {
        podReplacementPolicy: "Failed",
        template: template("job", { restartPolicy: "Never", affinity: { nodeAffinity } }),
      },
    },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        namespace,
        name: "mirror",
        labels: { app: "mirror" },
        annotations: { "kubernetes.io/config.mirror": "0", "kubernetes.io/config.source": "file" },
      },
      spec: { containers, nodeName: node, tolerations: [{ operator: "Exists", effect: "NoExecute" }] },
    },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace, name: "tolerant", labels: { app: "tolerant" } },
      spec: { containers, nodeName: node, tolerations: [{ operator: "Exists" }] },
    },
  ];
  for (const object of objects) await applyObject(api, object);
  const find = async (app: string): Promise<PodView | undefined> => {
    const pods = await api.list<PodView>(`${PODS}?labelSelector=app%3D${app}`);
    return pods.find(({ spec, status }) => spec.nodeName === node && status.phase === "Running");
  };
  const running = (app: string): Promise<PodView> =>
    eventually(`a pod of ${app} runs on ${node}`, READY_TIMEOUT_MS, () => find(app));
  const [daemon, job, mirror, tolerant] = await Promise.all(["daemon", "job", "mirror", "tolerant"].map(running));
  assert.ok(daemon && job && mirror && tolerant);
  return {
    assertReleased: async (seen) => {
      const versions = (pod: PodView): Seen<PodView>[] =>
        seen.filter(({ object }) => object.metadata.uid === pod.metadata.uid);
      for (const pod of [daemon, job]) {
        // Waits, because the Job controller removes its own finalizer first.
        await eventually(`${pod.metadata.name} is gone`, READY_TIMEOUT_MS, () =>
          Promise.resolve(versions(pod).at(-1)?.type === "DELETED"),
        );
        const failed = versions(pod).find(({ object }) => object.status.phase === "Failed")?.object;
        const isDisrupted = failed?.status.conditions?.some(({ type }) => type === "DisruptionTarget");
        assert.equal(isDisrupted, true, `${pod.metadata.name} failed as disrupted`);
      }
      const jobs = await eventually("the Job has another pod", READY_TIMEOUT_MS, async () => {
        const pods = await api.list<PodView>(`${PODS}?labelSelector=app%3Djob`);
        return pods.length === 1 && pods[0]?.spec.nodeName !== undefined && pods;
      });
      assert.notEqual(jobs[0]?.spec.nodeName, node, "the Job runs elsewhere");
      for (const pod of [mirror, tolerant]) {
        const now = await api.find<PodView>(`${PODS}/${pod.metadata.name}`);
        assert.deepEqual(
          [now?.metadata.uid, now?.metadata.deletionTimestamp],
          [pod.metadata.uid, undefined],
          `${pod.metadata.name} stays`,
        );
      }
    },
    remove: async () => {
      const deleteNow = (path: string): Promise<unknown> =>
        api.send("DELETE", path, { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background" });
      await deleteNow("/apis/policy/v1/namespaces/default/poddisruptionbudgets/no-eviction");
      await deleteNow("/apis/apps/v1/namespaces/default/daemonsets/daemon");
      await deleteNow("/apis/batch/v1/namespaces/default/jobs/job");
      for (const name of ["mirror", "tolerant"]) await api.delete(`${PODS}/${name}`);
    },
  };
}
