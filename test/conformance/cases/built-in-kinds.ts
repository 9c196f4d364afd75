import { at, fields, outcome } from "../api.ts";
import type { Api, ConformanceCase } from "../api.ts";

const LEASE = "coordination.k8s.io/v1";
const EVENTS = "events.k8s.io/v1";
const EVENT = {
  eventTime: "2026-01-01T00:00:00.000000Z",
  reason: "Fenced",
  action: "Fence",
  type: "Normal",
  note: "the host is off",
  reportingController: "ironfence.io/agent",
  reportingInstance: "agent-0",
};
const REFUSED_EVENT = { status: 422, reason: "Invalid", kind: "Event" };

/** An event about an object in the case's own namespace, or in another one. */
function eventIn(api: Api, namespace: string, change: object = {}): object {
  return {
    metadata: { name: "a", namespace: api.namespace },
    ...EVENT,
    regarding: { kind: "Pod", name: "pod-1", namespace },
    ...change,
  };
}

const SPEC = { schedulerName: "nobody", containers: [{ name: "a", image: "a" }] };

export const BUILT_IN_KINDS: readonly ConformanceCase[] = [
  {
    name: "a new Node is tainted not-ready, and keeps the status it came with",
    run: async (api) => {
      const metadata = { name: api.namespace };
      const status = { phase: "Running" };
      const created = await api.send("POST", "/api/v1/nodes", { metadata, status });
      await api.send("DELETE", `/api/v1/nodes/${api.namespace}`);
      return fields(created, "spec.taints", "status.phase", "metadata.generation");
    },
    answer: {
      status: 201,
      "spec.taints": [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }],
      "status.phase": "Running",
      "metadata.generation": undefined,
    },
  },
  {
    name: "a Node's /status takes metadata too, but no spec; the Node itself takes no status",
    run: async (api) => {
      const path = `/api/v1/nodes/${api.namespace}`;
      await api.send("POST", "/api/v1/nodes", { metadata: { name: api.namespace } });
      const patch = { metadata: { labels: { a: "b" } }, spec: { unschedulable: true }, status: { phase: "Running" } };
      const sub = await api.merge(`${path}/status`, patch);
      const main = await api.merge(path, { spec: { unschedulable: true }, status: { phase: "Pending" } });
      await api.send("DELETE", path);
      return [sub, main].map((answer) => fields(answer, "metadata.labels.a", "spec.unschedulable", "status.phase"));
    },
    answer: [
      { status: 200, "metadata.labels.a": "b", "spec.unschedulable": undefined, "status.phase": "Running" },
      { status: 200, "metadata.labels.a": "b", "spec.unschedulable": true, "status.phase": "Running" },
    ],
  },
  {
    name: "a Node's taints are unique by key and effect, with a known effect; its providerID does not change",
    run: async (api) => {
      const path = `/api/v1/nodes/${api.namespace}`;
      const spec = { providerID: "metal://1" };
      await api.send("POST", "/api/v1/nodes", { metadata: { name: api.namespace }, spec });
      const taint = async (...taints: unknown[]) => outcome(await api.merge(path, { spec: { taints } }));
      const answers = [
        await taint({ key: "a", effect: "NoExecute" }, { key: "a", effect: "NoExecute", value: "b" }),
        await taint({ key: "a", effect: "NoExecute" }, { key: "a", effect: "NoSchedule" }),
        await taint({ key: "a", effect: "Never" }),
        outcome(await api.merge(path, { spec: { providerID: "metal://2" } })),
      ];
      await api.send("DELETE", path);
      return answers;
    },
    answer: [
      { status: 422, reason: "Invalid", kind: "Node", wrong: ["metadata.taints[1] FieldValueDuplicate"] },
      { status: 200 },
      { status: 422, reason: "Invalid", kind: "Node", wrong: ["metadata.taints[0].effect FieldValueNotSupported"] },
      { status: 422, reason: "Invalid", kind: "Node", wrong: ["spec.providerID FieldValueForbidden"] },
    ],
  },
  {
    name: "a new Pod is Pending whatever status it has, and tolerates an unreachable node for five minutes",
    run: async (api) => {
      const body = { metadata: { name: "a" }, spec: SPEC, status: { phase: "Running" } };
      const created = await api.send("POST", api.core("pods"), body);
      await api.send("DELETE", api.core("pods", "a"));
      const paths = ["status.phase", "spec.tolerations", "spec.terminationGracePeriodSeconds", "metadata.generation"];
      return fields(created, ...paths);
    },
    answer: {
      status: 201,
      "status.phase": "Pending",
      "spec.tolerations": ["not-ready", "unreachable"].map((name) => ({
        key: `node.kubernetes.io/${name}`,
        operator: "Exists",
        effect: "NoExecute",
        tolerationSeconds: 300,
      })),
      "spec.terminationGracePeriodSeconds": 30,
      "metadata.generation": 1,
    },
  },
  {
    name: "a Pod needs containers, does not change its node, and takes its status through /status",
    run: async (api) => {
      const spec = { ...SPEC, nodeName: "nowhere" };
      const path = api.core("pods", "a");
      const bare = await api.send("POST", api.core("pods"), { metadata: { name: "a" }, spec: { nodeName: "nowhere" } });
      await api.send("POST", api.core("pods"), { metadata: { name: "a" }, spec });
      const moved = await api.merge(path, { spec: { nodeName: "elsewhere" } });
      const main = await api.merge(path, { status: { phase: "Failed" } });
      const sub = await api.merge(`${path}/status`, { status: { phase: "Failed" } });
      await api.send("DELETE", `${path}?gracePeriodSeconds=0`);
      return [outcome(bare), outcome(moved), at(main.body, "status.phase"), at(sub.body, "status.phase")];
    },
    answer: [
      { status: 422, reason: "Invalid", kind: "Pod", wrong: ["spec.containers FieldValueRequired"] },
      { status: 422, reason: "Invalid", kind: "Pod", wrong: ["spec FieldValueForbidden"] },
      "Pending",
      "Failed",
    ],
  },
  {
    name: "a Pod is bound once",
    run: async (api) => {
      await api.send("POST", api.core("pods"), { metadata: { name: "a" }, spec: SPEC });
      const bind = async (name: string) => {
        const binding = { metadata: { name: "a" }, target: { kind: "Node", name } };
        return outcome(await api.send("POST", `${api.core("pods", "a")}/binding`, binding));
      };
      const answers = [await bind("nowhere"), await bind("elsewhere")];
      const nodeName = at((await api.get(api.core("pods", "a"))).body, "spec.nodeName");
      await api.send("DELETE", `${api.core("pods", "a")}?gracePeriodSeconds=0`);
      return [...answers, nodeName];
    },
    answer: [{ status: 201 }, { status: 409, reason: "Conflict", kind: "pods/binding" }, "nowhere"],
  },
  {
    name: "a Lease needs times with six digits, keeps them in UTC, and lasts at least one second",
    run: async (api) => {
      const create = (name: string, spec: unknown) =>
        api.send("POST", api.in(LEASE, "leases"), { metadata: { name }, spec });
      return [
        outcome(await create("a", { renewTime: "2026-01-01T00:00:00Z" })),
        outcome(await create("a", { leaseDurationSeconds: 0 })),
        fields(await create("a", { renewTime: "2026-01-01T00:00:00.123456+01:00" }), "spec.renewTime"),
      ];
    },
    answer: [
      { status: 400, reason: "BadRequest" },
      {
        status: 422,
        reason: "Invalid",
        kind: "Lease",
        group: "coordination.k8s.io",
        wrong: ["spec.leaseDurationSeconds FieldValueInvalid"],
      },
      { status: 201, "spec.renewTime": "2025-12-31T23:00:00.123456Z" },
    ],
  },
  {
    name: "a VolumeAttachment is created detached, needs a source and does not move",
    run: async (api) => {
      const path = "/apis/storage.k8s.io/v1/volumeattachments";
      const { namespace: name } = api;
      const spec = { attacher: "a.example", nodeName: "nowhere", source: { persistentVolumeName: "pv" } };
      const bare = await api.send("POST", path, { metadata: { name }, spec: { attacher: "a", nodeName: "nowhere" } });
      const created = await api.send("POST", path, { metadata: { name }, spec, status: { attached: true } });
      const moved = await api.merge(`${path}/${name}`, { spec: { nodeName: "elsewhere" } });
      const attached = await api.merge(`${path}/${name}/status`, { status: { attached: true } });
      await api.send("DELETE", `${path}/${name}`);
      const group = "storage.k8s.io";
      return {
        bare: outcome(bare),
        moved: outcome(moved),
        attached: [created, attached].map(({ body }) => at(body, "status.attached")),
        group,
      };
    },
    answer: {
      bare: {
        status: 422,
        reason: "Invalid",
        kind: "VolumeAttachment",
        group: "storage.k8s.io",
        wrong: ["spec.source FieldValueRequired"],
      },
      moved: {
        status: 422,
        reason: "Invalid",
        kind: "VolumeAttachment",
        group: "storage.k8s.io",
        wrong: ["spec FieldValueInvalid"],
      },
      attached: [false, true],
      group: "storage.k8s.io",
    },
  },
  {
    name: "a Secret takes text in stringData, shows it as base64, and refuses data that is not base64",
    run: async (api) => {
      const create = (name: string, content: object) =>
        api.send("POST", api.core("secrets"), { metadata: { name }, ...content });
      return [
        fields(await create("a", { stringData: { password: "open sesame" } }), "data", "stringData", "type"),
        outcome(await create("b", { data: { password: "$$$" } })),
      ];
    },
    answer: [
      { status: 201, data: { password: "b3BlbiBzZXNhbWU=" }, stringData: undefined, type: "Opaque" },
      { status: 400, reason: "BadRequest" },
    ],
  },
  {
    name: "one event is visible through both groups, with the field names of each",
    run: async (api) => {
      await api.send("POST", api.in(EVENTS, "events"), eventIn(api, api.namespace));
      const core = await api.get(api.core("events", "a"));
      const grouped = await api.get(api.in(EVENTS, "events", "a"));
      return [
        fields(core, "apiVersion", "message", "involvedObject.name", "reportingComponent", "note"),
        fields(grouped, "apiVersion", "note", "regarding.name", "reportingController", "message"),
      ];
    },
    answer: [
      {
        status: 200,
        apiVersion: "v1",
        message: EVENT.note,
        "involvedObject.name": "pod-1",
        reportingComponent: EVENT.reportingController,
        note: undefined,
      },
      {
        status: 200,
        apiVersion: EVENTS,
        note: EVENT.note,
        "regarding.name": "pod-1",
        reportingController: EVENT.reportingController,
        message: undefined,
      },
    ],
  },
  {
    name: "an event of events.k8s.io must be complete, of a known type and short",
    run: async (api) => {
      const create = async (change: object) =>
        outcome(await api.send("POST", api.in(EVENTS, "events"), eventIn(api, api.namespace, change)));
      return [
        await create({ eventTime: undefined }),
        await create({ eventTime: "2026-01-01T00:00:00Z" }),
        await create({ action: undefined, reason: undefined, reportingInstance: undefined }),
        await create({ type: "Odd" }),
        await create({ note: "n".repeat(1_025) }),
      ];
    },
    answer: [
      { ...REFUSED_EVENT, wrong: ["eventTime FieldValueRequired"] },
      { status: 400, reason: "BadRequest" },
      {
        ...REFUSED_EVENT,
        wrong: ["action FieldValueRequired", "reason FieldValueRequired", "reportingInstance FieldValueRequired"],
      },
      { ...REFUSED_EVENT, wrong: ["type FieldValueInvalid"] },
      { ...REFUSED_EVENT, wrong: ["message FieldValueInvalid"] },
    ],
  },
  {
    name: "an event about a cluster-scoped object lies in `default`; core/v1 wants it in the namespace of its object",
    run: async (api) => {
      const regarding = { kind: "Node", name: "node-1" };
      const involvedObject = { kind: "Pod", name: "pod-1", namespace: "default" };
      const post = async (path: string, event: object) => {
        const answer = await api.send("POST", `${path}?dryRun=All`, { metadata: { generateName: "a-" }, ...event });
        return outcome(answer);
      };
      return [
        await post(api.in(EVENTS, "events"), { ...EVENT, regarding }),
        await post("/apis/events.k8s.io/v1/namespaces/default/events", { ...EVENT, regarding }),
        await post(api.core("events"), { reason: "Fenced", message: "off", type: "Normal", involvedObject }),
      ];
    },
    answer: [
      { ...REFUSED_EVENT, wrong: ["involvedObject.namespace FieldValueInvalid"] },
      { status: 201 },
      { ...REFUSED_EVENT, wrong: ["involvedObject.namespace FieldValueInvalid"] },
    ],
  },
  {
    name: "a stored event changes only in its series",
    run: async (api) => {
      const path = api.in(EVENTS, "events", "a");
      await api.send("POST", api.in(EVENTS, "events"), eventIn(api, api.namespace));
      const series = { count: 2, lastObservedTime: "2026-01-01T00:00:01.000000Z" };
      return [fields(await api.merge(path, { series }), "series"), outcome(await api.merge(path, { note: "another" }))];
    },
    answer: [
      { status: 200, series: { count: 2, lastObservedTime: "2026-01-01T00:00:01.000000Z" } },
      { ...REFUSED_EVENT, wrong: ["message FieldValueInvalid"] },
    ],
  },
  {
    name: "a new namespace is Active, labelled with its name and held by the cluster's finalizer",
    run: async (api) => {
      const { body } = await api.get(`/api/v1/namespaces/${api.namespace}`);
      const labels = at(body, "metadata.labels") as Record<string, string>;
      return [
        at(body, "status.phase"),
        at(body, "spec.finalizers"),
        labels["kubernetes.io/metadata.name"] === api.namespace,
      ];
    },
    answer: ["Active", ["kubernetes"], true],
  },
];
