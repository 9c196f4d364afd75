import { at, uidOf, versionOf } from "../api.ts";
import type { Api, ConformanceCase } from "../api.ts";
import { gadgetDefinition } from "../gadget.ts";

async function currentVersion(api: Api): Promise<string> {
  return versionOf((await api.get(api.core("secrets"))).body);
}

const create = (api: Api, name: string, labels: Record<string, string> = {}) =>
  api.send("POST", api.core("secrets"), { metadata: { name, labels } });

export const WATCHES: readonly ConformanceCase[] = [
  {
    name: "a watch from a list's version shows every later change in order, each with a higher version",
    run: async (api) => {
      await create(api, "before");
      const watch = await api.watch(`${api.core("secrets")}?watch=true&resourceVersion=${await currentVersion(api)}`);
      await create(api, "a");
      await api.merge(api.core("secrets", "a"), { metadata: { labels: { k: "v" } } });
      await api.send("DELETE", api.core("secrets", "a"));
      const events = [await watch.next(), await watch.next(), await watch.next()];
      const versions = events.map((event) => Number(versionOf(event?.object)));
      return {
        events: events.map((event) => [event?.type, at(event?.object, "kind"), at(event?.object, "metadata.labels")]),
        rising: versions.every((version, index) => index === 0 || version > (versions[index - 1] ?? 0)),
      };
    },
    answer: {
      events: [
        ["ADDED", "Secret", undefined],
        ["MODIFIED", "Secret", { k: "v" }],
        ["DELETED", "Secret", { k: "v" }],
      ],
      rising: true,
    },
  },
  {
    name: "a watch from the version of an event continues right after it",
    run: async (api) => {
      const created = await create(api, "a");
      await create(api, "b");
      await create(api, "c");
      const from = versionOf(created.body);
      return (await api.watch(`${api.core("secrets")}?watch=true&resourceVersion=${from}`)).names(2);
    },
    answer: ["ADDED b", "ADDED c"],
  },
  {
    name: "a watch without a version, or from 0, begins with all that is there",
    run: async (api) => {
      await create(api, "a");
      await create(api, "b");
      const all = await api.watch(`${api.core("secrets")}?watch=true`);
      const any = await api.watch(`${api.core("secrets")}?watch=true&resourceVersion=0`);
      const events = [...(await all.names(2)).sort(), ...(await any.names(2)).sort()];
      await create(api, "c");
      return [...events, ...(await all.names(1)), ...(await any.names(1))];
    },
    answer: ["ADDED a", "ADDED b", "ADDED a", "ADDED b", "ADDED c", "ADDED c"],
  },
  {
    name: "a watch with a selector adds an object that begins to match, and deletes one that no longer matches",
    run: async (api) => {
      const from = await currentVersion(api);
      const selector = "labelSelector=watched%3Dyes";
      const watch = await api.watch(`${api.core("secrets")}?watch=true&${selector}&resourceVersion=${from}`);
      await create(api, "other");
      await create(api, "a");
      const label = (labels: unknown) => api.merge(api.core("secrets", "a"), { metadata: { labels } });
      await label({ watched: "yes" });
      await label({ watched: "yes", more: "1" });
      const left = await label({ watched: "no" });
      await label({ watched: "yes" });
      const events = [await watch.next(), await watch.next(), await watch.next(), await watch.next()];
      return [
        events.map((event) => event?.type),
        // The DELETED event has the version of the change after which the object no longer matched.
        versionOf(events[2]?.object) === versionOf(left.body),
      ];
    },
    answer: [["ADDED", "MODIFIED", "DELETED", "ADDED"], true],
  },
  {
    name: "a watch of one object by its name sees no other",
    run: async (api) => {
      const from = await currentVersion(api);
      const watch = await api.watch(
        `${api.core("secrets")}?watch=true&fieldSelector=metadata.name%3Db&resourceVersion=${from}`,
      );
      await create(api, "a");
      await create(api, "b");
      await api.send("DELETE", api.core("secrets", "a"));
      await api.send("DELETE", api.core("secrets", "b"));
      return watch.names(2);
    },
    answer: ["ADDED b", "DELETED b"],
  },
  {
    name: "an object deleted and created again is DELETED, then ADDED with another UID",
    run: async (api) => {
      const from = await currentVersion(api);
      const watch = await api.watch(`${api.core("secrets")}?watch=true&resourceVersion=${from}`);
      await create(api, "a");
      await api.send("DELETE", api.core("secrets", "a"));
      await create(api, "a");
      const [first, gone, second] = [await watch.next(), await watch.next(), await watch.next()];
      return [
        gone?.type,
        uidOf(gone?.object) === uidOf(first?.object),
        second?.type,
        uidOf(second?.object) === uidOf(first?.object),
      ];
    },
    answer: ["DELETED", true, "ADDED", false],
  },
  {
    name: "an object with a finalizer is modified when it is deleted, and deleted when it is released",
    run: async (api) => {
      const from = await currentVersion(api);
      const watch = await api.watch(`${api.core("secrets")}?watch=true&resourceVersion=${from}`);
      const finalizers = ["conformance.example/hold"];
      await api.send("POST", api.core("secrets"), { metadata: { name: "a", finalizers } });
      await api.send("DELETE", api.core("secrets", "a"));
      await api.merge(api.core("secrets", "a"), { metadata: { finalizers: null } });
      const events = [await watch.next(), await watch.next(), await watch.next()];
      return events.map((event) => [event?.type, typeof at(event?.object, "metadata.deletionTimestamp")]);
    },
    answer: [
      ["ADDED", "undefined"],
      ["MODIFIED", "string"],
      ["DELETED", "string"],
    ],
  },
  {
    name: "a write that changes nothing is not an event",
    run: async (api) => {
      await create(api, "a", { k: "v" });
      const watch = await api.watch(`${api.core("secrets")}?watch=true&resourceVersion=${await currentVersion(api)}`);
      await api.merge(api.core("secrets", "a"), { metadata: { labels: { k: "v" } } });
      await create(api, "b");
      return watch.names(1);
    },
    answer: ["ADDED b"],
  },
  {
    name: "a watch ends by itself after timeoutSeconds",
    run: async (api) => {
      const from = await currentVersion(api);
      const watch = await api.watch(`${api.core("secrets")}?watch=true&timeoutSeconds=1&resourceVersion=${from}`);
      return [watch.status, await watch.next()];
    },
    answer: [200, undefined],
  },
  {
    name: "a watch from a future version stays open without events",
    run: async (api) => {
      const future = Number(await currentVersion(api)) + 1_000_000;
      const options = `allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion=${future}`;
      const watch = await api.watch(`${api.core("secrets")}?watch=true&${options}`);
      await create(api, "a");
      return [watch.status, await watch.next()];
    },
    answer: [200, undefined],
  },
  {
    name: "a bookmark marks the end of the initial events if a watch asks for them",
    run: async (api) => {
      await create(api, "a");
      const options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
      const watch = await api.watch(`${api.core("secrets")}?watch=true&${options}`);
      const [first, mark] = [await watch.next(), await watch.next()];
      const annotation = at(mark?.object, "metadata.annotations") as Record<string, string> | undefined;
      return [first?.type, mark?.type, annotation?.["k8s.io/initial-events-end"], at(mark?.object, "kind")];
    },
    answer: ["ADDED", "BOOKMARK", "true", "Secret"],
  },
  {
    name: "a watch from a revision older than the history of a kind gets Expired",
    run: async (api) => {
      const before = await currentVersion(api);
      await create(api, "later");
      const definition = gadgetDefinition(api);
      await api.install(definition.object);
      const watch = await api.watch(`${definition.path}?watch=true&resourceVersion=${before}`);
      const event = await watch.next();
      return [watch.status, event?.type, at(event?.object, "code"), at(event?.object, "reason")];
    },
    answer: [200, "ERROR", 410, "Expired"],
  },
];
