import { isObject } from "../../../hack/kube-mock/json.ts";
import type { JsonObject } from "../../../hack/kube-mock/json.ts";
import { at, fields, names, outcome, versionOf } from "../api.ts";
import type { Answer, Api, ConformanceCase } from "../api.ts";
import { gadgetDefinition } from "../gadget.ts";

/** A server with gadgets, and the requests that cases send. */
class Gadgets {
  readonly api: Api;
  readonly group: string;
  readonly path: string;
  readonly betaPath: string;

  private constructor(api: Api) {
    const { group, path, betaPath } = gadgetDefinition(api);
    this.api = api;
    this.group = group;
    this.path = path;
    this.betaPath = betaPath;
  }

  static async install(api: Api): Promise<Gadgets> {
    await api.install(gadgetDefinition(api).object);
    return new Gadgets(api);
  }

  create(name: string, spec: unknown, content: JsonObject = {}, query = ""): Promise<Answer> {
    const type = { apiVersion: `${this.group}/v1`, kind: "Gadget" };
    return this.api.send("POST", `${this.path}${query}`, { ...type, metadata: { name }, spec, ...content });
  }

  /** A refusal without the name of the group, which differs in each case. */
  async refusal(answer: Promise<Answer>): Promise<unknown> {
    const { group: _group, ...rest } = outcome(await answer);
    return rest;
  }
}

const INVALID = { status: 422, reason: "Invalid", kind: "Gadget" };

export const CUSTOM_RESOURCES: readonly ConformanceCase[] = [
  {
    name: "a definition gets its names filled in, is Established and is found by discovery, the stable version first",
    run: async (api) => {
      const { group } = await Gadgets.install(api);
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.${group}`;
      const { body } = await api.get(path);
      const conditions = at(body, "status.conditions");
      const resources = at((await api.get(`/apis/${group}/v1`)).body, "resources");
      const describe = (resource: unknown) => [at(resource, "name"), at(resource, "kind"), at(resource, "namespaced")];
      return {
        names: at(body, "status.acceptedNames"),
        conditions: Array.isArray(conditions)
          ? conditions.map((condition) => `${String(at(condition, "type"))}=${String(at(condition, "status"))}`)
          : [],
        stored: at(body, "status.storedVersions"),
        generation: at(body, "metadata.generation"),
        preferred: at((await api.get(`/apis/${group}`)).body, "preferredVersion.version"),
        resources: Array.isArray(resources) ? resources.map(describe) : [],
      };
    },
    answer: {
      names: { plural: "gadgets", singular: "gadget", kind: "Gadget", listKind: "GadgetList" },
      conditions: ["NamesAccepted=True", "Established=True"],
      stored: ["v1"],
      generation: 1,
      preferred: "v1",
      resources: [
        ["gadgets", "Gadget", true],
        ["gadgets/status", "Gadget", true],
      ],
    },
  },
  {
    name: "defaults are filled in at every depth, also for a null in a field that may not be null",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const spec = { host: "ab", count: null, note: null, ports: [{ name: "a" }] };
      return fields(await gadgets.create("a", spec), "spec", "metadata.generation");
    },
    answer: {
      status: 201,
      spec: { host: "ab", count: 3, mode: "Fast", note: null, ports: [{ name: "a", number: 80 }] },
      "metadata.generation": 1,
    },
  },
  {
    name: "values of the wrong type are refused",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      return gadgets.refusal(
        gadgets.create("a", { host: 5, count: "x", enabled: "x", tags: "x", extra: [], since: "yesterday" }),
      );
    },
    answer: {
      ...INVALID,
      wrong: [
        "spec.count FieldValueTypeInvalid",
        "spec.enabled FieldValueTypeInvalid",
        "spec.extra FieldValueTypeInvalid",
        "spec.host FieldValueTypeInvalid",
        "spec.since FieldValueTypeInvalid",
        "spec.tags FieldValueTypeInvalid",
      ],
    },
  },
  {
    name: "values out of bounds are refused",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      return [
        await gadgets.refusal(gadgets.create("a", { host: "a", count: 0, ratio: 0.7, mode: "Odd", limit: "x" })),
        await gadgets.refusal(gadgets.create("a", { host: "abcdef", count: 10 })),
        await gadgets.refusal(
          gadgets.create("a", { host: "ab", tags: ["a", "b", "c", "d"], labels: { a: "1", b: "2", c: "3" } }),
        ),
      ];
    },
    answer: [
      {
        ...INVALID,
        wrong: [
          "spec.count FieldValueInvalid",
          "spec.host FieldValueInvalid",
          "spec.limit FieldValueInvalid",
          "spec.mode FieldValueNotSupported",
          "spec.ratio FieldValueInvalid",
        ],
      },
      { ...INVALID, wrong: ["spec.count FieldValueInvalid", "spec.host FieldValueTooLong"] },
      { ...INVALID, wrong: ["spec.labels FieldValueTooMany", "spec.tags FieldValueTooMany"] },
    ],
  },
  {
    name: "missing fields are refused, at the root too",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      return [
        await gadgets.refusal(gadgets.create("a", undefined)),
        await gadgets.refusal(gadgets.create("a", { ports: [{ number: 1 }] })),
      ];
    },
    answer: [
      { ...INVALID, wrong: ["spec FieldValueRequired"] },
      { ...INVALID, wrong: ["spec.host FieldValueRequired", "spec.ports[0].name FieldValueRequired"] },
    ],
  },
  {
    name: "an int-or-string takes both and nothing else",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const limit = async (name: string, value: unknown) =>
        gadgets.refusal(gadgets.create(name, { host: "ab", limit: value }));
      return [await limit("a", 5), await limit("b", "5%"), await limit("c", "five"), await limit("d", true)];
    },
    answer: [
      { status: 201 },
      { status: 201 },
      { ...INVALID, wrong: ["spec.limit FieldValueInvalid"] },
      { ...INVALID, wrong: ["spec.limit FieldValueTypeInvalid"] },
    ],
  },
  {
    name: "a set or a map accepts each key once",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const spec = {
        host: "ab",
        tags: ["x", "y", "x"],
        ports: [{ name: "a" }, { name: "b" }, { name: "a", number: 1 }],
      };
      return gadgets.refusal(gadgets.create("a", spec));
    },
    answer: { ...INVALID, wrong: ["spec.ports[2] FieldValueDuplicate", "spec.tags[2] FieldValueDuplicate"] },
  },
  {
    name: "unknown fields are dropped with a warning, kept if the schema says so, and refused if the client asks for that",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const spec = { host: "ab", odd: 1, extra: { anything: { goes: true } }, labels: { any: "key" } };
      const created = await gadgets.create("a", spec, { bogus: {} });
      const strict = gadgets.create("b", { host: "ab", odd: 1 }, {}, "?fieldValidation=Strict");
      return {
        ...fields(created, "spec.odd", "bogus", "spec.extra", "spec.labels"),
        warned: created.warning?.includes('unknown field \\"spec.odd\\"'),
        strict: await gadgets.refusal(strict),
      };
    },
    answer: {
      status: 201,
      "spec.odd": undefined,
      bogus: undefined,
      "spec.extra": { anything: { goes: true } },
      "spec.labels": { any: "key" },
      warned: true,
      strict: { status: 400, reason: "BadRequest" },
    },
  },
  {
    name: "kind and apiVersion must be present and correct",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const post = (type: JsonObject) =>
        gadgets.refusal(api.send("POST", gadgets.path, { ...type, metadata: { name: "a" }, spec: { host: "ab" } }));
      const apiVersion = `${gadgets.group}/v1`;
      return [
        await post({}),
        await post({ apiVersion, kind: "Widget" }),
        await post({ apiVersion: `${gadgets.group}/v2`, kind: "Gadget" }),
      ];
    },
    answer: [
      { status: 400, reason: "BadRequest" },
      { status: 422, reason: "Invalid", kind: "Widget", wrong: ["kind FieldValueInvalid"] },
      { status: 400, reason: "BadRequest" },
    ],
  },
  {
    name: "the status is written through /status alone, and nothing else is",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const path = `${gadgets.path}/a`;
      const created = await gadgets.create("a", { host: "ab" }, { status: { phase: "Early" } });
      const main = await api.merge(path, { status: { phase: "Main" } });
      const sub = await api.merge(`${path}/status`, {
        metadata: { labels: { a: "b" } },
        spec: { host: "cd" },
        status: { phase: "Right" },
      });
      return [created, main, sub].map((answer) =>
        fields(answer, "status", "spec.host", "metadata.labels", "metadata.generation"),
      );
    },
    answer: [undefined, undefined, { phase: "Right" }].map((status) => ({
      status,
      "spec.host": "ab",
      "metadata.labels": undefined,
      "metadata.generation": 1,
    })),
  },
  {
    name: "the generation counts changes of the spec, and a deletion that has to wait",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const path = `${gadgets.path}/a`;
      await gadgets.create("a", { host: "ab" });
      const steps = [
        await api.merge(path, { metadata: { labels: { a: "b" }, finalizers: ["conformance.example/hold"] } }),
        await api.merge(`${path}/status`, { status: { phase: "A" } }),
        await api.merge(path, { spec: { host: "cd" } }),
        await api.merge(path, { spec: { host: "cd" } }),
        await api.send("DELETE", path),
        await api.merge(path, { metadata: { finalizers: null } }),
      ];
      return steps.map(({ body }) => at(body, "metadata.generation"));
    },
    answer: [1, 1, 2, 2, 3, 3],
  },
  {
    name: "an update without a resourceVersion is refused, and one with an old one is a Conflict",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const { body } = await gadgets.create("a", { host: "ab" });
      await api.merge(`${gadgets.path}/a/status`, { status: { phase: "A" } });
      const put = (metadata: JsonObject) => {
        const type = { apiVersion: `${gadgets.group}/v1`, kind: "Gadget" };
        const object = { ...type, metadata: { name: "a", ...metadata }, spec: { host: "cd" } };
        return gadgets.refusal(api.send("PUT", `${gadgets.path}/a`, object));
      };
      return [await put({}), await put({ resourceVersion: versionOf(body) })];
    },
    answer: [
      { status: 422, reason: "Invalid", kind: "gadgets", wrong: ["metadata.resourceVersion FieldValueInvalid"] },
      { status: 409, reason: "Conflict", kind: "gadgets" },
    ],
  },
  {
    name: "a custom resource takes no strategic merge patch, and its finalizers need no domain",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      await gadgets.create("a", { host: "ab" });
      const path = `${gadgets.path}/a`;
      const strategic = api.send("PATCH", path, {}, "application/strategic-merge-patch+json");
      const refused = await gadgets.refusal(strategic);
      const kept = await api.merge(path, { metadata: { finalizers: ["plain"] } });
      await api.merge(path, { metadata: { finalizers: null } });
      return [refused, fields(kept, "metadata.finalizers")];
    },
    answer: [
      { status: 415, reason: "UnsupportedMediaType" },
      { status: 200, "metadata.finalizers": ["plain"] },
    ],
  },
  {
    name: "all served versions show the same object",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      const { body } = await gadgets.create("a", { host: "ab" });
      const beta = await api.merge(`${gadgets.betaPath}/a`, { spec: { host: "cd" } });
      const stable = await api.get(`${gadgets.path}/a`);
      const version = (answer: Answer) => String(at(answer.body, "apiVersion")).split("/")[1];
      return {
        versions: [version(beta), version(stable)],
        host: at(stable.body, "spec.host"),
        same: at(stable.body, "metadata.uid") === at(body, "metadata.uid"),
        generation: at(stable.body, "metadata.generation"),
      };
    },
    answer: { versions: ["v1beta1", "v1"], host: "cd", same: true, generation: 2 },
  },
  {
    name: "custom resources are listed with kind and version on each item, and selected by the fields they name",
    run: async (api) => {
      const gadgets = await Gadgets.install(api);
      await gadgets.create("a", { host: "ab" });
      await gadgets.create("b", { host: "cd" });
      const list = await api.get(gadgets.path);
      const first = at(list.body, "items.0");
      return {
        kinds: [at(list.body, "kind"), at(first, "kind"), isObject(first) && typeof first["apiVersion"]],
        selected: names(await api.get(`${gadgets.path}?fieldSelector=spec.host%3Dcd`)),
        unknown: await gadgets.refusal(api.get(`${gadgets.path}?fieldSelector=spec.mode%3DFast`)),
      };
    },
    answer: {
      kinds: ["GadgetList", "Gadget", "string"],
      selected: ["b"],
      unknown: { status: 400, reason: "BadRequest" },
    },
  },
  {
    name: "a definition whose name, versions or scope is wrong is refused",
    run: async (api) => {
      const { object } = gadgetDefinition(api);
      const post = async (change: JsonObject, spec: JsonObject) =>
        outcome(
          await api.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            ...object,
            ...change,
            spec: { ...(isObject(object["spec"]) ? object["spec"] : {}), ...spec },
          }),
        );
      const { status, reason, kind, wrong } = await post({ metadata: { name: "other.example.com" } }, {});
      return [{ status, reason, kind, wrong }, at(await post({}, { scope: "Galaxy" }), "status")];
    },
    answer: [
      { status: 422, reason: "Invalid", kind: "CustomResourceDefinition", wrong: ["metadata.name FieldValueInvalid"] },
      422,
    ],
  },
];
