import { at, fields, names, outcome, uidOf, versionOf } from "../api.ts";
import type { ConformanceCase } from "../api.ts";

const NOT_FOUND = { status: 404, reason: "NotFound", kind: "configmaps" };
const HOLD = "conformance.example/hold";
/** A pod that no scheduler binds, so that it stays as the case creates it. */
const SPEC = { schedulerName: "nobody", containers: [{ name: "a", image: "a" }] };

export const DELETIONS: readonly ConformanceCase[] = [
  {
    name: "a deletion names what it deleted, and deleting again is NotFound",
    run: async (api) => {
      const object = await api.configMap("a");
      const path = api.core("configmaps", "a");
      const deleted = await api.send("DELETE", path);
      return [
        fields(deleted, "kind", "status", "details.kind"),
        at(deleted.body, "details.uid") === uidOf(object),
        outcome(await api.send("DELETE", path)),
      ];
    },
    answer: [{ status: "Success", kind: "Status", "details.kind": "configmaps" }, true, NOT_FOUND],
  },
  {
    name: "a deletion is guarded by UID and resourceVersion",
    run: async (api) => {
      const object = await api.configMap("a");
      const path = api.core("configmaps", "a");
      const remove = async (preconditions: unknown) => outcome(await api.send("DELETE", path, { preconditions }));
      return [
        await remove({ uid: "another" }),
        await remove({ resourceVersion: "1" }),
        await remove({ uid: uidOf(object), resourceVersion: versionOf(object) }),
      ];
    },
    answer: [
      { status: 409, reason: "Conflict", kind: "ConfigMap" },
      { status: 409, reason: "Conflict", kind: "ConfigMap" },
      { status: 200 },
    ],
  },
  {
    name: "a dry run of a deletion deletes nothing; a dry run of another kind is refused",
    run: async (api) => {
      await api.configMap("a");
      const path = api.core("configmaps", "a");
      return [
        outcome(await api.send("DELETE", `${path}?dryRun=All`)),
        outcome(await api.get(path)),
        outcome(await api.send("DELETE", `${path}?dryRun=Some`)),
      ];
    },
    answer: [
      { status: 200 },
      { status: 200 },
      {
        status: 422,
        reason: "Invalid",
        kind: "DeleteOptions",
        group: "meta.k8s.io",
        wrong: ["dryRun FieldValueNotSupported"],
      },
    ],
  },
  {
    name: "a finalizer keeps a deleted object until it is removed",
    run: async (api) => {
      await api.configMap("a", { metadata: { finalizers: [HOLD] } });
      const path = api.core("configmaps", "a");
      const first = await api.send("DELETE", path);
      const second = await api.send("DELETE", path);
      const released = await api.merge(path, { metadata: { finalizers: null } });
      return [
        fields(first, "kind", "metadata.deletionGracePeriodSeconds"),
        typeof at(first.body, "metadata.deletionTimestamp"),
        versionOf(first.body) === versionOf(second.body),
        outcome(released),
        outcome(await api.get(path)),
      ];
    },
    answer: [
      { status: 200, kind: "ConfigMap", "metadata.deletionGracePeriodSeconds": 0 },
      "string",
      true,
      { status: 200 },
      NOT_FOUND,
    ],
  },
  {
    name: "a deleted object takes no new finalizer, and its deletionTimestamp stays",
    run: async (api) => {
      await api.configMap("a", { metadata: { finalizers: [HOLD] } });
      const path = api.core("configmaps", "a");
      await api.send("DELETE", path);
      const added = await api.merge(path, { metadata: { finalizers: [HOLD, "conformance.example/more"] } });
      const revived = await api.merge(path, { metadata: { deletionTimestamp: null }, data: { k: "1" } });
      await api.merge(path, { metadata: { finalizers: null } });
      return [outcome(added), typeof at(revived.body, "metadata.deletionTimestamp"), at(revived.body, "data")];
    },
    answer: [
      { status: 422, reason: "Invalid", kind: "ConfigMap", wrong: ["metadata.finalizers FieldValueForbidden"] },
      "string",
      { k: "1" },
    ],
  },
  {
    name: "a pod with a node stays Terminating for its grace period, a shorter one counts, and force ends it",
    run: async (api) => {
      await api.send("POST", api.core("pods"), { metadata: { name: "a" }, spec: { ...SPEC, nodeName: "nowhere" } });
      const path = api.core("pods", "a");
      const grace = "metadata.deletionGracePeriodSeconds";
      return [
        fields(await api.send("DELETE", path), grace, "metadata.generation"),
        fields(await api.send("DELETE", path, { gracePeriodSeconds: 10 }), grace, "metadata.generation"),
        fields(await api.send("DELETE", `${path}?gracePeriodSeconds=20`), grace),
        fields(await api.send("DELETE", path, { gracePeriodSeconds: 0 }), "kind", grace),
        outcome(await api.get(path)),
      ];
    },
    answer: [
      { status: 200, "metadata.deletionGracePeriodSeconds": 30, "metadata.generation": 2 },
      { status: 200, "metadata.deletionGracePeriodSeconds": 10, "metadata.generation": 2 },
      { status: 200, "metadata.deletionGracePeriodSeconds": 10 },
      { status: 200, kind: "Pod", "metadata.deletionGracePeriodSeconds": 0 },
      { status: 404, reason: "NotFound", kind: "pods" },
    ],
  },
  {
    name: "a pod without a node, or one that has ended, is deleted at once",
    run: async (api) => {
      await api.send("POST", api.core("pods"), { metadata: { name: "a" }, spec: SPEC });
      await api.send("POST", api.core("pods"), { metadata: { name: "b" }, spec: { ...SPEC, nodeName: "nowhere" } });
      await api.merge(`${api.core("pods", "b")}/status`, { status: { phase: "Failed" } });
      await api.send("DELETE", api.core("pods", "a"));
      await api.send("DELETE", api.core("pods", "b"));
      return [outcome(await api.get(api.core("pods", "a"))), outcome(await api.get(api.core("pods", "b")))];
    },
    answer: [
      { status: 404, reason: "NotFound", kind: "pods" },
      { status: 404, reason: "NotFound", kind: "pods" },
    ],
  },
  {
    name: "some kinds answer a deletion with the object that was there",
    run: async (api) => {
      const path = "/apis/storage.k8s.io/v1/volumeattachments";
      const spec = { attacher: "a", nodeName: "nowhere", source: { persistentVolumeName: "a" } };
      await api.send("POST", path, { metadata: { name: api.namespace }, spec });
      const deleted = await api.send("DELETE", `${path}/${api.namespace}`);
      return fields(deleted, "kind", "spec.nodeName", "metadata.deletionTimestamp");
    },
    answer: {
      status: 200,
      kind: "VolumeAttachment",
      "spec.nodeName": "nowhere",
      "metadata.deletionTimestamp": undefined,
    },
  },
  {
    name: "a collection is deleted by label",
    run: async (api) => {
      await api.configMap("a", { metadata: { labels: { tier: "x" } } });
      await api.configMap("b", { metadata: { labels: { tier: "x" } } });
      await api.configMap("c");
      const deleted = await api.send("DELETE", `${api.core("configmaps")}?labelSelector=tier%3Dx`);
      const left = names(await api.get(api.core("configmaps")));
      // The controller manager creates this ConfigMap in every namespace.
      return [outcome(deleted), left.filter((name) => name !== "kube-root-ca.crt")];
    },
    answer: [{ status: 200 }, ["c"]],
  },
];
