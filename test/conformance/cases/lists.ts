import { textOf } from "../../../hack/kube-mock/json.ts";
import { at, fields, names, outcome, versionOf } from "../api.ts";
import type { Api, ConformanceCase } from "../api.ts";
import { gadgetDefinition } from "../gadget.ts";

const BAD_REQUEST = { status: 400, reason: "BadRequest" };
const BAD_OPTIONS = {
  status: 422,
  reason: "Invalid",
  kind: "ListOptions",
  group: "meta.k8s.io",
  wrong: ["resourceVersionMatch FieldValueForbidden"],
};

/** Creates four Secrets with labels. No controller adds Secrets to a namespace by itself. */
async function createLabelled(api: Api): Promise<void> {
  const labels = [{ tier: "x", rank: "1" }, { tier: "y", rank: "5" }, { tier: "x" }, {}];
  for (const [index, own] of labels.entries()) {
    await api.send("POST", api.core("secrets"), { metadata: { name: `s-${index}`, labels: own } });
  }
}

async function createFive(api: Api): Promise<void> {
  for (const name of ["a", "b", "c", "d", "e"]) await api.send("POST", api.core("secrets"), { metadata: { name } });
}

export const LISTS: readonly ConformanceCase[] = [
  {
    name: "label selectors support equality, sets, presence and their negations",
    run: async (api) => {
      await createLabelled(api);
      const select = async (selector: string) =>
        names(await api.get(`${api.core("secrets")}?labelSelector=${encodeURIComponent(selector)}`)).join(" ");
      return {
        "tier=x": await select("tier=x"),
        "tier==y": await select("tier==y"),
        "tier!=x": await select("tier!=x"),
        "tier in (x,y)": await select("tier in (x,y)"),
        "tier notin (y)": await select("tier notin (y)"),
        tier: await select("tier"),
        "!tier": await select("!tier"),
        "rank>2": await select("rank>2"),
        "rank<2": await select("rank<2"),
        "tier=x,rank": await select("tier=x,rank"),
      };
    },
    answer: {
      "tier=x": "s-0 s-2",
      "tier==y": "s-1",
      "tier!=x": "s-1 s-3",
      "tier in (x,y)": "s-0 s-1 s-2",
      "tier notin (y)": "s-0 s-2 s-3",
      tier: "s-0 s-1 s-2",
      "!tier": "s-3",
      "rank>2": "s-1",
      "rank<2": "s-0",
      "tier=x,rank": "s-0",
    },
  },
  {
    name: "field selectors support the name, the node of a pod and its phase",
    run: async (api) => {
      const containers = [{ name: "a", image: "a" }];
      for (const name of ["a", "b"]) {
        const spec = { nodeName: `node-${name}`, containers };
        await api.send("POST", api.core("pods"), { metadata: { name }, spec });
      }
      await api.merge(`${api.core("pods", "b")}/status`, { status: { phase: "Running" } });
      const select = async (selector: string) =>
        names(await api.get(`${api.core("pods")}?fieldSelector=${encodeURIComponent(selector)}`)).join(" ");
      const selected = [
        await select("metadata.name=a"),
        await select("metadata.name!=a"),
        await select("spec.nodeName=node-b"),
        await select("status.phase=Pending"),
        await select("spec.nodeName=node-b,status.phase=Pending"),
        await select(`metadata.namespace=${api.namespace}`),
      ];
      for (const name of ["a", "b"]) await api.send("DELETE", `${api.core("pods", name)}?gracePeriodSeconds=0`);
      return selected;
    },
    answer: ["a", "b", "b", "a", "", "a b"],
  },
  {
    name: "a selector that cannot be read, or selects by another field, is BadRequest",
    run: async (api) => {
      const list = async (query: string) => outcome(await api.get(`${api.core("secrets")}?${query}`));
      return [
        await list("labelSelector=a%3D%3D%3Db"),
        await list("labelSelector=a%20in%20b"),
        await list("fieldSelector=spec.gadget%3Da"),
      ];
    },
    answer: [BAD_REQUEST, BAD_REQUEST, BAD_REQUEST],
  },
  {
    name: "a list of a built-in kind comes without kind and version on each item",
    run: async (api) => {
      await createFive(api);
      const list = await api.get(`${api.core("secrets")}?limit=1`);
      return fields(list, "kind", "apiVersion", "items.0.kind", "items.0.apiVersion", "items.0.metadata.name");
    },
    answer: {
      status: 200,
      kind: "SecretList",
      apiVersion: "v1",
      "items.0.kind": undefined,
      "items.0.apiVersion": undefined,
      "items.0.metadata.name": "a",
    },
  },
  {
    name: "all pages of a list show the state at the time of the first page",
    run: async (api) => {
      await createFive(api);
      const path = `${api.core("secrets")}?limit=2`;
      const pages = [await api.get(path)];
      await api.send("DELETE", api.core("secrets", "c"));
      await api.send("POST", api.core("secrets"), { metadata: { name: "d-2" } });
      await api.merge(api.core("secrets", "e"), { metadata: { labels: { late: "yes" } } });
      for (;;) {
        const token = textOf(at(pages.at(-1)?.body, "metadata.continue"));
        if (token === "") break;
        pages.push(await api.get(`${path}&continue=${encodeURIComponent(token)}`));
      }
      return {
        pages: pages.map((page) => names(page).join(" ")),
        remaining: pages.map(({ body }) => at(body, "metadata.remainingItemCount")),
        sameVersion: new Set(pages.map(({ body }) => versionOf(body))).size === 1,
        oldState: at(pages.at(-1)?.body, "items.0.metadata.labels"),
        now: names(await api.get(api.core("secrets"))).join(" "),
      };
    },
    answer: {
      pages: ["a b", "c d", "e"],
      remaining: [3, 1, undefined],
      sameVersion: true,
      oldState: undefined,
      now: "a b d d-2 e",
    },
  },
  {
    name: "pages of a selection do not say how many are left",
    run: async (api) => {
      await createLabelled(api);
      const first = await api.get(`${api.core("secrets")}?limit=1&labelSelector=tier%3Dx`);
      const token = encodeURIComponent(textOf(at(first.body, "metadata.continue")));
      const second = await api.get(`${api.core("secrets")}?limit=1&labelSelector=tier%3Dx&continue=${token}`);
      return [names(first), at(first.body, "metadata.remainingItemCount"), names(second)];
    },
    answer: [["s-0"], undefined, ["s-2"]],
  },
  {
    name: "invalid limits, versions and tokens are BadRequest",
    run: async (api) => {
      const list = async (query: string) => outcome(await api.get(`${api.core("secrets")}?${query}`));
      return [await list("limit=x"), await list("limit=1&continue=nope"), await list("resourceVersion=nope")];
    },
    answer: [BAD_REQUEST, BAD_REQUEST, BAD_REQUEST],
  },
  {
    name: "resourceVersionMatch needs a resourceVersion, and Exact one above 0",
    run: async (api) => {
      const list = async (query: string) => outcome(await api.get(`${api.core("secrets")}?${query}`));
      return [
        await list("resourceVersionMatch=Exact"),
        await list("resourceVersionMatch=NotOlderThan"),
        await list("resourceVersion=0&resourceVersionMatch=Exact"),
        await list("resourceVersion=0"),
      ];
    },
    answer: [BAD_OPTIONS, BAD_OPTIONS, BAD_OPTIONS, { status: 200 }],
  },
  {
    name: "a list that is Exact shows the past, one that is NotOlderThan shows the present, and one of a future version times out",
    run: async (api) => {
      await api.send("POST", api.core("secrets"), { metadata: { name: "a" } });
      const then = versionOf((await api.get(api.core("secrets"))).body);
      await api.send("POST", api.core("secrets"), { metadata: { name: "b" } });
      const list = (query: string) => api.get(`${api.core("secrets")}?${query}`);
      return [
        names(await list(`resourceVersion=${then}&resourceVersionMatch=Exact`)),
        names(await list(`resourceVersion=${then}&resourceVersionMatch=NotOlderThan`)),
        outcome(await list("resourceVersion=999999999")),
      ];
    },
    answer: [["a"], ["a", "b"], { status: 504, reason: "Timeout", wrong: ["ResourceVersionTooLarge"] }],
  },
  {
    name: "a continue token for a revision that is compacted is Expired",
    run: async (api) => {
      // A real server caches recent pages even after a compaction, so the token is for a kind that is new to it.
      const version = versionOf((await api.get(api.core("secrets"))).body);
      const { object, path } = gadgetDefinition(api);
      await api.install(object);
      await createFive(api);
      await api.compact();
      const token = JSON.stringify({ v: "meta.k8s.io/v1", rv: Number(version), start: "a\0" });
      return outcome(await api.get(`${path}?limit=2&continue=${Buffer.from(token).toString("base64url")}`));
    },
    answer: { status: 410, reason: "Expired" },
  },
];
