import { at, fields, outcome, uidOf, versionOf } from "../api.ts";
import type { ConformanceCase } from "../api.ts";

const CONFLICT = { status: 409, reason: "Conflict", kind: "configmaps" };
const REJECTED = { status: 422, reason: "Invalid" };

export const WRITES: readonly ConformanceCase[] = [
  {
    name: "PUT with an old resourceVersion is a Conflict and changes nothing",
    run: async (api) => {
      const first = await api.configMap("a", { data: { k: "1" } });
      const path = api.core("configmaps", "a");
      await api.merge(path, { data: { k: "2" } });
      const stale = { metadata: { name: "a", resourceVersion: versionOf(first) }, data: { k: "3" } };
      return [outcome(await api.send("PUT", path, stale)), fields(await api.get(path), "data.k")];
    },
    answer: [CONFLICT, { status: 200, "data.k": "2" }],
  },
  {
    name: "PUT without a resourceVersion overwrites a ConfigMap and is refused for a Lease",
    run: async (api) => {
      await api.configMap("a");
      const lease = api.in("coordination.k8s.io/v1", "leases", "a");
      const created = await api.send("PUT", lease, { metadata: { name: "a" }, spec: {} });
      return [
        outcome(await api.send("PUT", api.core("configmaps", "a"), { metadata: { name: "a" }, data: { k: "2" } })),
        outcome(created),
        outcome(await api.send("PUT", lease, { metadata: { name: "a" }, spec: { holderIdentity: "b" } })),
      ];
    },
    answer: [
      { status: 200 },
      { status: 201 },
      {
        status: 422,
        reason: "Invalid",
        kind: "leases",
        group: "coordination.k8s.io",
        wrong: ["metadata.resourceVersion FieldValueInvalid"],
      },
    ],
  },
  {
    name: "PUT for another UID is a Conflict, for another name BadRequest, for an absent object NotFound",
    run: async (api) => {
      await api.configMap("a");
      const put = async (name: string, metadata: unknown) =>
        outcome(await api.send("PUT", api.core("configmaps", name), { metadata }));
      return [
        await put("a", { name: "a", uid: "another" }),
        await put("a", { name: "b" }),
        await put("absent", { name: "absent" }),
      ];
    },
    answer: [CONFLICT, { status: 400, reason: "BadRequest" }, { status: 404, reason: "NotFound", kind: "configmaps" }],
  },
  {
    name: "a write that changes nothing keeps the resourceVersion",
    run: async (api) => {
      const first = await api.configMap("a", { data: { k: "1" } });
      const path = api.core("configmaps", "a");
      const put = await api.send("PUT", path, { metadata: { name: "a" }, data: { k: "1" } });
      const patch = await api.merge(path, { data: { k: "1" } });
      return [put, patch].map(({ status, body }) => [status, versionOf(body) === versionOf(first)]);
    },
    answer: [
      [200, true],
      [200, true],
    ],
  },
  {
    name: "a merge patch sets fields, removes them with null and replaces lists as a whole",
    run: async (api) => {
      const finalizers = ["conformance.example/a", "conformance.example/b"];
      await api.configMap("a", { metadata: { finalizers }, data: { keep: "1", drop: "2" } });
      const path = api.core("configmaps", "a");
      const patched = await api.merge(path, {
        metadata: { finalizers: ["conformance.example/b"] },
        data: { drop: null, add: "3" },
      });
      await api.merge(path, { metadata: { finalizers: null } });
      return fields(patched, "metadata.finalizers", "data");
    },
    answer: { status: 200, "metadata.finalizers": ["conformance.example/b"], data: { keep: "1", add: "3" } },
  },
  {
    name: "a merge patch is guarded by the resourceVersion and the UID in it",
    run: async (api) => {
      const first = await api.configMap("a");
      const path = api.core("configmaps", "a");
      const patch = async (metadata: unknown) => outcome(await api.merge(path, { metadata, data: { k: "2" } }));
      return [
        await patch({ uid: uidOf(first), resourceVersion: "1" }),
        await patch({ uid: "another" }),
        await patch({ uid: uidOf(first), resourceVersion: versionOf(first) }),
        await patch({ name: "b" }),
      ];
    },
    answer: [
      CONFLICT,
      { status: 422, reason: "Invalid", kind: "ConfigMap", wrong: ["metadata.uid FieldValueInvalid"] },
      { status: 200 },
      { status: 400, reason: "BadRequest" },
    ],
  },
  {
    name: "a JSON patch whose test holds is applied",
    run: async (api) => {
      const first = await api.configMap("a", { metadata: { annotations: { "a.example/b": "1" } }, data: { k: "1" } });
      const patched = await api.jsonPatch(api.core("configmaps", "a"), [
        { op: "test", path: "/metadata/uid", value: uidOf(first) },
        { op: "test", path: "/metadata/resourceVersion", value: versionOf(first) },
        { op: "replace", path: "/data/k", value: "2" },
        { op: "add", path: "/data/new", value: "3" },
        { op: "remove", path: "/metadata/annotations/a.example~1b" },
      ]);
      return fields(patched, "data", "metadata.annotations");
    },
    answer: { status: 200, data: { k: "2", new: "3" }, "metadata.annotations": undefined },
  },
  {
    name: "a JSON patch whose test fails is Invalid, and none of it is applied",
    run: async (api) => {
      await api.configMap("a", { data: { k: "1" } });
      const path = api.core("configmaps", "a");
      const guarded = (guard: string, value: string) =>
        api.jsonPatch(path, [
          { op: "replace", path: "/data/k", value: "2" },
          { op: "test", path: guard, value },
        ]);
      return [
        outcome(await guarded("/metadata/uid", "another")),
        outcome(await guarded("/metadata/resourceVersion", "1")),
        fields(await api.get(path), "data.k"),
      ];
    },
    answer: [REJECTED, REJECTED, { status: 200, "data.k": "1" }],
  },
  {
    name: "a JSON patch test for null holds where the member is absent, and fails where its parent is",
    run: async (api) => {
      await api.configMap("a");
      const test = async (path: string, value: unknown) =>
        outcome(await api.jsonPatch(api.core("configmaps", "a"), [{ op: "test", path, value }]));
      return [
        await test("/metadata/labels", null),
        await test("/metadata/labels/a", null),
        await test("/metadata/labels", {}),
      ];
    },
    answer: [{ status: 200 }, REJECTED, REJECTED],
  },
  {
    name: "a JSON patch cannot remove what is absent nor add below it, but may replace an absent member",
    run: async (api) => {
      await api.configMap("a", { data: { k: "1" } });
      const apply = async (operation: unknown) =>
        outcome(await api.jsonPatch(api.core("configmaps", "a"), [operation]));
      return [
        await apply({ op: "remove", path: "/data/absent" }),
        await apply({ op: "add", path: "/metadata/labels/a", value: "b" }),
        await apply({ op: "replace", path: "/data/absent", value: "2" }),
      ];
    },
    answer: [REJECTED, REJECTED, { status: 200 }],
  },
  {
    name: "a JSON patch reaches into lists: by index, at the end, and never beyond it",
    run: async (api) => {
      const names = ["a", "b", "c"].map((name) => `conformance.example/${name}`);
      await api.configMap("a", { metadata: { finalizers: names } });
      const path = api.core("configmaps", "a");
      const patched = await api.jsonPatch(path, [
        { op: "test", path: "/metadata/finalizers/1", value: names[1] },
        { op: "remove", path: "/metadata/finalizers/1" },
        { op: "add", path: "/metadata/finalizers/-", value: "conformance.example/d" },
        { op: "add", path: "/metadata/finalizers/0", value: "conformance.example/e" },
      ]);
      const beyond = await api.jsonPatch(path, [{ op: "remove", path: "/metadata/finalizers/9" }]);
      await api.merge(path, { metadata: { finalizers: null } });
      return [fields(patched, "metadata.finalizers"), outcome(beyond)];
    },
    answer: [
      {
        status: 200,
        "metadata.finalizers": ["e", "a", "c", "d"].map((name) => `conformance.example/${name}`),
      },
      REJECTED,
    ],
  },
  {
    name: "a patch that is not valid is BadRequest, an unknown operation Invalid, a type that is not valid 415, an absent object NotFound",
    run: async (api) => {
      await api.configMap("a");
      const path = api.core("configmaps", "a");
      return [
        outcome(await api.jsonPatch(path, "[")),
        outcome(await api.jsonPatch(path, {})),
        outcome(await api.merge(path, "[]")),
        outcome(await api.jsonPatch(path, [{ op: "frobnicate", path: "/data" }])),
        outcome(await api.send("PATCH", path, {}, "application/json")),
        outcome(await api.merge(api.core("configmaps", "absent"), {})),
      ];
    },
    answer: [
      { status: 400, reason: "BadRequest" },
      { status: 400, reason: "BadRequest" },
      { status: 400, reason: "BadRequest" },
      REJECTED,
      { status: 415, reason: "UnsupportedMediaType" },
      { status: 404, reason: "NotFound", kind: "configmaps" },
    ],
  },
  {
    name: "a dry run of a patch answers with the change and keeps what is stored",
    run: async (api) => {
      const first = await api.configMap("a", { data: { k: "1" } });
      const path = api.core("configmaps", "a");
      const dry = await api.merge(`${path}?dryRun=All`, { data: { k: "2" } });
      const after = await api.get(path);
      return [fields(dry, "data.k"), fields(after, "data.k"), versionOf(after.body) === versionOf(first)];
    },
    answer: [{ status: 200, "data.k": "2" }, { status: 200, "data.k": "1" }, true],
  },
  {
    name: "an immutable ConfigMap does not change",
    run: async (api) => {
      await api.configMap("a", { immutable: true, data: { k: "1" } });
      const path = api.core("configmaps", "a");
      return [
        outcome(await api.merge(path, { data: { k: "2" } })),
        at((await api.merge(path, { metadata: { labels: { a: "b" } } })).body, "metadata.labels"),
      ];
    },
    answer: [{ status: 422, reason: "Invalid", kind: "ConfigMap", wrong: ["data FieldValueForbidden"] }, { a: "b" }],
  },
];
