import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createKubeClient } from "../../../src/kube/api-client/api-client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import type { KubeErrorCode } from "../../../src/kube/errors.ts";
import { createHttpTransport } from "../../../src/kube/connection/transport/http-transport.ts";
import { pointer } from "../../../src/kube/objects/json-pointer.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import type { KubeTransport } from "../../../src/kube/transport.ts";
import { systemClock } from "../../../src/runtime/system.ts";
import { accessTo, failure, json, startApiStub } from "./api-stub.ts";
import type { ApiStub } from "./api-stub.ts";
import { CONFIG_MAP, evenRandom, NODE, nodeObject } from "./support.ts";

const never = new AbortController().signal;
const quickRandom = { ...evenRandom, next: () => 0 };

let stub: ApiStub;
let transport: KubeTransport;

before(async () => {
  stub = await startApiStub((_request, response) => json(response, 500, failure(500, "InternalError", "unset")));
  transport = createHttpTransport(accessTo(stub.url), { clock: systemClock });
});
beforeEach(() => {
  stub.requests.length = 0;
});
after(async () => {
  await transport.close();
  await stub.close();
});

const client = () => createKubeClient({ transport, clock: systemClock, random: quickRandom });

function rejectsWith(code: KubeErrorCode, text: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(isKubeError(error, code), String(error));
    assert.match(error.message, text);
    return true;
  };
}

test("a list is read page by page, and its items get the kind that the server leaves out", async () => {
  stub.handle(({ url }, response) => {
    const page = Number(url.searchParams.get("continue") ?? "0");
    const { name, ...metadata } = nodeObject(`n${page}`, `u${page}`, 5).metadata;
    const next = page < 2 ? { continue: String(page + 1) } : {};
    json(response, 200, {
      kind: "NodeList",
      metadata: { resourceVersion: "9", ...next },
      items: [{ metadata: { name, ...metadata } }],
    });
  });
  const list = await client().list(NODE, { labelSelector: "a=b", pageSize: 1 }, never);
  assert.deepEqual(list, {
    items: [nodeObject("n0", "u0", 5), nodeObject("n1", "u1", 5), nodeObject("n2", "u2", 5)],
    resourceVersion: "9",
  });
  assert.deepEqual(
    stub.requests.map(({ url }) => url.search),
    [
      "?limit=1&labelSelector=a%3Db",
      "?limit=1&labelSelector=a%3Db&continue=1",
      "?limit=1&labelSelector=a%3Db&continue=2",
    ],
  );
});

test("a list of one page has the version of the whole collection, and reads nothing more", async () => {
  stub.handle((_request, response) => {
    json(response, 200, {
      kind: "NodeList",
      metadata: { resourceVersion: "9", continue: "1" },
      items: [{ metadata: nodeObject("n0", "u0", 5).metadata }],
    });
  });
  const list = await client().list(NODE, { pageSize: 1, pagesMax: 1 }, never);
  assert.deepEqual(list, { items: [nodeObject("n0", "u0", 5)], resourceVersion: "9" });
  assert.deepEqual(
    stub.requests.map(({ url }) => url.search),
    ["?limit=1"],
  );
});

test("a list whose token has run out begins again, and only once", async () => {
  let expiries = 1;
  stub.handle(({ url }, response) => {
    if (!url.searchParams.has("continue")) {
      json(response, 200, { metadata: { resourceVersion: "9", continue: "x" }, items: [nodeObject("a", "u", 1)] });
    } else if (expiries-- > 0) json(response, 410, failure(410, "Expired", "too old"));
    else json(response, 200, { metadata: { resourceVersion: "10" }, items: [nodeObject("b", "v", 1)] });
  });
  const list = await client().list(NODE, {}, never);
  assert.deepEqual(
    list.items.map((node) => node.metadata.name),
    ["a", "b"],
  );
  expiries = 2;
  await assert.rejects(client().list(NODE, {}, never), rejectsWith("Gone", /^list nodes: 410 Expired: too old/));
});

test("a read is repeated later if the server asks for that", async () => {
  const atMs: number[] = [];
  stub.handle((_request, response) => {
    atMs.push(systemClock.monotonicMs());
    if (atMs.length === 1) json(response, 429, failure(429, "TooManyRequests", "slow"), { "retry-after": "1" });
    else if (atMs.length === 2) json(response, 503, failure(503, "ServiceUnavailable", "down"));
    else json(response, 200, nodeObject("a", "u", 1));
  });
  assert.equal((await client().get(NODE, { name: "a" }, never)).metadata.uid, "u");
  assert.ok((atMs[1] ?? 0) - (atMs[0] ?? 0) >= 990, "Retry-After is honored");
  assert.equal(atMs.length, 3);
});

test("a write is never made twice, whatever happened to it", async () => {
  const guard = { uid: "u", resourceVersion: "1" };
  const key = { name: "a" };
  const writes = [
    () => client().create(NODE, { apiVersion: "v1", kind: "Node", metadata: { name: "a" } }, {}, never),
    () => client().patch(NODE, key, guard, [], {}, never),
    () => client().mergePatch(NODE, key, guard, { status: {} }, {}, never),
    () => client().delete(NODE, key, { guard }, never),
  ];
  for (const [status, reason] of [
    [503, "ServiceUnavailable"],
    [429, "TooManyRequests"],
  ] as const) {
    stub.handle((_request, response) => json(response, status, failure(status, reason, "no")));
    for (const write of writes) {
      stub.requests.length = 0;
      await assert.rejects(write(), (error) => isKubeError(error) && error.retryable && error.status === status);
      assert.equal(stub.requests.length, 1);
    }
  }
  stub.handle((_request, _response, raw) => raw.socket.destroy());
  for (const write of writes) {
    stub.requests.length = 0;
    await assert.rejects(write(), (error) => isKubeError(error, "Network"));
    assert.equal(stub.requests.length, 1);
  }
});

test("every write carries its guard", async () => {
  stub.handle((_request, response) => json(response, 200, nodeObject("a", "u", 2)));
  const guard = { uid: "u", resourceVersion: "1" };
  const operation = { op: "remove", path: pointer("metadata", "annotations", "x/y~z") } as const;
  await client().patch(NODE, { name: "a" }, guard, [operation], { subresource: "status", dryRun: true }, never);
  await client().mergePatch(NODE, { name: "a" }, guard, { metadata: { labels: { l: null } }, spec: {} }, {}, never);
  await client().delete(NODE, { name: "a" }, { guard, gracePeriodSeconds: 0, propagationPolicy: "Background" }, never);
  assert.deepEqual(
    stub.requests.map(({ method, url, headers, body }) => [
      method,
      url.pathname + url.search,
      headers["content-type"],
      JSON.parse(body),
    ]),
    [
      [
        "PATCH",
        "/api/v1/nodes/a/status?dryRun=All",
        "application/json-patch+json",
        [
          { op: "test", path: "/metadata/uid", value: "u" },
          { op: "test", path: "/metadata/resourceVersion", value: "1" },
          { op: "remove", path: "/metadata/annotations/x~1y~0z" },
        ],
      ],
      [
        "PATCH",
        "/api/v1/nodes/a",
        "application/merge-patch+json",
        { metadata: { labels: { l: null }, uid: "u", resourceVersion: "1" }, spec: {} },
      ],
      [
        "DELETE",
        "/api/v1/nodes/a",
        "application/json",
        {
          apiVersion: "v1",
          kind: "DeleteOptions",
          preconditions: { uid: "u", resourceVersion: "1" },
          gracePeriodSeconds: 0,
          propagationPolicy: "Background",
        },
      ],
    ],
  );
});

test("a creation can be strict, so that the server refuses fields that it does not know", async () => {
  stub.handle((_request, response) => json(response, 200, nodeObject("a", "u", 2)));
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "a" } };
  await client().create(NODE, node, { strict: true }, never);
  await client().create(NODE, node, { strict: true, dryRun: true }, never);
  assert.deepEqual(
    stub.requests.map(({ url }) => url.search),
    ["?fieldValidation=Strict", "?dryRun=All&fieldValidation=Strict"],
  );
});

test("every write can be a dry run, which the server checks and does not store", async () => {
  stub.handle((_request, response) => json(response, 200, nodeObject("a", "u", 2)));
  const guard = { uid: "u", resourceVersion: "1" };
  const dryRun = true;
  await client().create(NODE, { apiVersion: "v1", kind: "Node", metadata: { name: "a" } }, { dryRun }, never);
  await client().patch(NODE, { name: "a" }, guard, [], { dryRun }, never);
  await client().mergePatch(NODE, { name: "a" }, guard, {}, { subresource: "status", dryRun }, never);
  await client().delete(NODE, { name: "a" }, { guard, dryRun }, never);
  assert.deepEqual(
    stub.requests.map(({ method, url }) => `${method} ${url.pathname}${url.search}`),
    [
      "POST /api/v1/nodes?dryRun=All",
      "PATCH /api/v1/nodes/a?dryRun=All",
      "PATCH /api/v1/nodes/a/status?dryRun=All",
      "DELETE /api/v1/nodes/a?dryRun=All",
    ],
  );
});

test("the server's refusals become codes, and messages name call, object and cause", async () => {
  const cases: [number, object, KubeErrorCode, RegExp][] = [
    [401, failure(401, "Unauthorized", "Unauthorized"), "Unauthorized", /401 Unauthorized/],
    [
      403,
      failure(403, "Forbidden", "user x may not"),
      "Forbidden",
      /^patch ConfigMap shop\/a: 403 Forbidden: user x may not$/,
    ],
    [404, failure(404, "NotFound", "no a"), "NotFound", /no a/],
    [405, failure(405, "MethodNotAllowed", "no"), "MethodNotAllowed", /405/],
    [409, failure(409, "AlreadyExists", "is there"), "AlreadyExists", /is there/],
    [409, failure(409, "Conflict", "modified"), "Conflict", /modified/],
    [410, failure(410, "Expired", "old"), "Gone", /old/],
    [415, failure(415, "UnsupportedMediaType", "type"), "BadRequest", /type/],
    // The whole answer of kube-apiserver 1.36 to a failed `test`.
    [
      422,
      failure(422, "Invalid", "the server rejected our request due to an error in our request"),
      "Conflict",
      /not what the patch expects/,
    ],
    [
      422,
      failure(422, "Invalid", "a is invalid", { causes: [{ message: "x", field: "spec" }] }),
      "Invalid",
      /a is invalid/,
    ],
    [500, failure(500, "InternalError", "oops"), "Unavailable", /oops/],
    [302, {}, "BadResponse", /302/],
  ];
  for (const [status, body, code, text] of cases) {
    stub.handle((_request, response) => json(response, status, body));
    const key = { namespace: "shop", name: "a" };
    await assert.rejects(client().patch(CONFIG_MAP, key, { uid: "u" }, [], {}, never), rejectsWith(code, text));
  }
  stub.handle((_request, response) => {
    response.writeHead(502, { "content-type": "text/html" });
    response.end("<h1>Bad gateway</h1>\nmore");
  });
  await assert.rejects(
    client().delete(NODE, { name: "a" }, { guard: { uid: "u" } }, never),
    rejectsWith("Unavailable", /502 Unavailable: the answer does not come from an API server$/),
  );
});

test("an answer that is not a Kubernetes object is refused", async () => {
  for (const body of ["", "[]", "{}", '{"kind":"Node"']) {
    stub.handle((_request, response) => response.end(body));
    await assert.rejects(
      client().get(NODE, { name: "a" }, never),
      rejectsWith("BadResponse", /^get Node a: the answer is not/),
    );
    await assert.rejects(client().list(NODE, {}, never), rejectsWith("BadResponse", /^list nodes: the answer is not/));
  }
});

test("a name that is missing never turns a call on one object into one on the collection", async () => {
  const guard = { uid: "u" };
  await assert.rejects(client().delete(NODE, { name: "" }, { guard }, never), rejectsWith("BadRequest", /missing/));
  await assert.rejects(
    client().delete(CONFIG_MAP, { name: "a" }, { guard }, never),
    rejectsWith("BadRequest", /missing/),
  );
  assert.equal(stub.requests.length, 0);
});

test("names are encoded, so that none can point elsewhere", async () => {
  stub.handle((_request, response) => json(response, 404, failure(404, "NotFound", "no")));
  await assert.rejects(client().get(NODE, { name: "../secrets?x" }, never));
  assert.equal(stub.requests[0]?.url.href, "http://stub/api/v1/nodes/..%2Fsecrets%3Fx");
});

test("discovery finds kinds by version and by group alone, and remembers only kinds that exist", async () => {
  const documents: Record<string, object> = {
    "/apis/fence.example": {
      versions: [{ version: "v1" }, { version: "v1beta1" }],
      preferredVersion: { version: "v1" },
    },
    "/apis/fence.example/v1": { resources: [{ name: "others", kind: "Other", namespaced: true }] },
    "/apis/fence.example/v1beta1": {
      resources: [
        { name: "fences/status", kind: "Fence", namespaced: true },
        { name: "fences", kind: "Fence", namespaced: true },
      ],
    },
    "/api/v1": { resources: [{ name: "nodes", kind: "Node", namespaced: false }] },
  };
  stub.handle(({ url }, response) => {
    const document = documents[url.pathname];
    if (document === undefined) json(response, 404, failure(404, "NotFound", "no"));
    else json(response, 200, document);
  });
  const kube = client();
  const fence = { group: "fence.example", version: "v1beta1", kind: "Fence", plural: "fences", namespaced: true };
  assert.deepEqual(await kube.discover("v1", "Node", never), NODE);
  assert.deepEqual(await kube.discover("fence.example", "Fence", never), fence);
  assert.deepEqual(await kube.discover("fence.example/v1beta1", "Fence", never), fence);
  assert.equal(await kube.discover("absent.example", "Fence", never), undefined);
  const askedBefore = stub.requests.length;
  await kube.discover("fence.example", "Fence", never);
  assert.equal(stub.requests.length, askedBefore, "remembered");
  await kube.discover("absent.example", "Fence", never);
  assert.equal(stub.requests.length, askedBefore + 1, "asked again");
});

test("the caller's signal ends a call", async () => {
  stub.handle(() => undefined);
  const stop = new AbortController();
  const call = client().get<KubeObject>(NODE, { name: "a" }, stop.signal);
  setTimeout(() => stop.abort(new Error("shutting down")), 50);
  await assert.rejects(call, rejectsWith("Aborted", /^get Node a.*shutting down/));
});
