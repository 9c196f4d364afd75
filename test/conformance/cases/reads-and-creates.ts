import { textOf } from "../../../hack/kube-mock/json.ts";
import { at, fields, outcome, uidOf, versionOf } from "../api.ts";
import type { ConformanceCase } from "../api.ts";

const LEASES = "coordination.k8s.io/v1";
const INVALID_CONFIG_MAP = { status: 422, reason: "Invalid", kind: "ConfigMap" };

export const READS_AND_CREATES: readonly ConformanceCase[] = [
  {
    name: "an absent object is NotFound, with what it is in the details",
    run: async (api) => [
      outcome(await api.get("/api/v1/nodes/absent")),
      outcome(await api.get(api.in(LEASES, "leases", "absent"))),
    ],
    answer: [
      { status: 404, reason: "NotFound", kind: "nodes" },
      { status: 404, reason: "NotFound", kind: "leases", group: "coordination.k8s.io" },
    ],
  },
  {
    name: "an unknown resource or subresource of a known group is NotFound without a kind; an unknown group is not a Status at all",
    run: async (api) => [
      outcome(await api.get("/api/v1/gadgets")),
      outcome(await api.get("/api/v1/nodes/a/gadget")),
      outcome(await api.get("/apis/gadgets.example/v1/gadgets")),
    ],
    answer: [{ status: 404, reason: "NotFound" }, { status: 404, reason: "NotFound" }, { status: 404 }],
  },
  {
    name: "methods that a path does not have are refused with 405",
    run: async (api) => [
      outcome(await api.send("POST", api.core("configmaps", "a"), {})),
      outcome(await api.send("PUT", api.core("configmaps"), {})),
      outcome(await api.send("DELETE", "/api/v1/nodes/a/status")),
      outcome(await api.send("POST", "/api/v1/configmaps", { metadata: { name: "a" } })),
    ],
    answer: Array.from({ length: 4 }, () => ({ status: 405, reason: "MethodNotAllowed" })),
  },
  {
    name: "a created object has an identity, a version and a time, and a ConfigMap no generation",
    run: async (api) => {
      const answer = await api.send("POST", api.core("configmaps"), { metadata: { name: "a" }, data: { k: "v" } });
      return {
        ...fields(answer, "kind", "apiVersion", "metadata.name", "metadata.generation", "data"),
        uid: /^[0-9a-f-]{36}$/.test(uidOf(answer.body)),
        version: /^\d+$/.test(versionOf(answer.body)),
        time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(textOf(at(answer.body, "metadata.creationTimestamp"))),
      };
    },
    answer: {
      status: 201,
      kind: "ConfigMap",
      apiVersion: "v1",
      "metadata.name": "a",
      "metadata.generation": undefined,
      data: { k: "v" },
      uid: true,
      version: true,
      time: true,
    },
  },
  {
    name: "a name that is taken is AlreadyExists",
    run: async (api) => {
      await api.configMap("a");
      return outcome(await api.send("POST", api.core("configmaps"), { metadata: { name: "a" } }));
    },
    answer: { status: 409, reason: "AlreadyExists", kind: "configmaps" },
  },
  {
    name: "generateName gives each object its own name",
    run: async (api) => {
      const create = () => api.send("POST", api.core("configmaps"), { metadata: { generateName: "node-1-" } });
      const [first, second] = [await create(), await create()];
      const form = /^node-1-[bcdfghjklmnpqrstvwxz2456789]{5}$/;
      const [a, b] = [first, second].map(({ body }) => textOf(at(body, "metadata.name")));
      return {
        ...fields(first, "metadata.generateName"),
        form: [a, b].every((name) => form.test(name ?? "")),
        different: a !== b,
      };
    },
    answer: { status: 201, "metadata.generateName": "node-1-", form: true, different: true },
  },
  {
    name: "names, labels, finalizers and owners are checked",
    run: async (api) => {
      const create = async (metadata: unknown) => outcome(await api.send("POST", api.core("configmaps"), { metadata }));
      return [
        await create({}),
        await create({ name: "Not_a_name" }),
        await create({ name: "a", labels: { "a b": "c d" } }),
        await create({ name: "a", finalizers: ["plain"] }),
        await create({ name: "a", ownerReferences: [{ kind: "Node" }] }),
      ];
    },
    answer: [
      { ...INVALID_CONFIG_MAP, wrong: ["metadata.name FieldValueRequired"] },
      { ...INVALID_CONFIG_MAP, wrong: ["metadata.name FieldValueInvalid"] },
      { ...INVALID_CONFIG_MAP, wrong: ["metadata.labels FieldValueInvalid"] },
      { ...INVALID_CONFIG_MAP, wrong: ["metadata.finalizers[0] FieldValueInvalid"] },
      {
        ...INVALID_CONFIG_MAP,
        wrong: [
          "metadata.ownerReferences.apiVersion FieldValueInvalid",
          "metadata.ownerReferences.name FieldValueInvalid",
          "metadata.ownerReferences.uid FieldValueInvalid",
        ],
      },
    ],
  },
  {
    name: "a creation may not name a resourceVersion, another namespace or another kind",
    run: async (api) => {
      const create = async (body: unknown) => outcome(await api.send("POST", api.core("configmaps"), body));
      return [
        await create({ metadata: { name: "a", resourceVersion: "5" } }),
        await create({ metadata: { name: "a", namespace: "default" } }),
        await create({ kind: "Secret", apiVersion: "v1", metadata: { name: "a" } }),
      ];
    },
    answer: [{ status: 500 }, { status: 400, reason: "BadRequest" }, { status: 400, reason: "BadRequest" }],
  },
  {
    name: "a body that is not valid JSON is BadRequest, one of another type 415",
    run: async (api) => [
      outcome(await api.send("POST", api.core("configmaps"), "{nope")),
      outcome(await api.send("POST", api.core("configmaps"), "nope", "text/plain")),
    ],
    answer: [
      { status: 400, reason: "BadRequest" },
      { status: 415, reason: "UnsupportedMediaType" },
    ],
  },
  {
    name: "nothing is created in a namespace that does not exist",
    run: async (api) =>
      outcome(await api.send("POST", "/api/v1/namespaces/absent/configmaps", { metadata: { name: "a" } })),
    answer: { status: 404, reason: "NotFound", kind: "namespaces" },
  },
  {
    name: "nothing is created in a namespace that is being deleted",
    run: async (api) => {
      await api.configMap("a", { metadata: { finalizers: ["conformance.example/hold"] } });
      const gone = await api.send("DELETE", `/api/v1/namespaces/${api.namespace}`);
      const refused = outcome(await api.send("POST", api.core("configmaps"), { metadata: { name: "b" } }));
      await api.merge(api.core("configmaps", "a"), { metadata: { finalizers: null } });
      return [fields(gone, "status.phase"), refused];
    },
    answer: [
      { status: 200, "status.phase": "Terminating" },
      { status: 403, reason: "Forbidden", kind: "configmaps", wrong: ["metadata.namespace NamespaceTerminating"] },
    ],
  },
  {
    name: "a dry run checks and answers, and stores nothing",
    run: async (api) => {
      const path = `${api.core("configmaps")}?dryRun=All`;
      const dry = await api.send("POST", path, { metadata: { name: "a" } });
      return [
        fields(dry, "metadata.name", "metadata.resourceVersion"),
        outcome(await api.get(api.core("configmaps", "a"))),
        outcome(await api.send("POST", path, { metadata: { name: "A" } })),
      ];
    },
    answer: [
      { status: 201, "metadata.name": "a", "metadata.resourceVersion": undefined },
      { status: 404, reason: "NotFound", kind: "configmaps" },
      { ...INVALID_CONFIG_MAP, wrong: ["metadata.name FieldValueInvalid"] },
    ],
  },
];
