import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createAccessReview } from "../../../src/kube/reviews/access-review.ts";
import type { AccessReview, AccessReviewResult } from "../../../src/kube/reviews/access-review.ts";
import type { KubeClient } from "../../../src/kube/client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import { sleep } from "../../../src/runtime/clock.ts";
import { Secret } from "../../../src/runtime/secret.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const SIGNAL = new AbortController().signal;
const USER = { username: "system:serviceaccount:monitoring:prometheus", uid: "u1", groups: ["g"], extra: { e: ["1"] } };

interface Sent {
  kind: string;
  spec: Record<string, unknown>;
}

interface World {
  clock: VirtualClock;
  sent: Sent[];
  statuses: Record<string, unknown>;
  ask: (token?: string, path?: string) => Promise<AccessReviewResult>;
}

/** An API server that knows one user. Each answer takes `costMs`. */
function world(costMs = 0): World {
  const clock = new VirtualClock();
  const sent: Sent[] = [];
  const statuses: Record<string, unknown> = {
    TokenReview: { authenticated: true, user: USER },
    SubjectAccessReview: { allowed: true },
  };
  const create = async (_type: unknown, { kind, spec }: Sent): Promise<object> => {
    sent.push({ kind, spec });
    if (costMs > 0) await sleep(clock, costMs, SIGNAL);
    return { kind, status: statuses[kind] };
  };
  const review: AccessReview = createAccessReview({ client: { create } as unknown as KubeClient, clock });
  const ask = (token = "t", path = "/metrics"): Promise<AccessReviewResult> => review(new Secret(token), path, SIGNAL);
  return { clock, sent, statuses, ask };
}

describe("the review of who may read a path", () => {
  it("the review of who may read a path asks for the user of the token, then whether that user may read the path, with groups and extra fields", async () => {
    const { ask, sent } = world();
    assert.equal(await ask(), "allowed");
    const { username: user, ...rest } = USER;
    assert.deepEqual(sent, [
      { kind: "TokenReview", spec: { token: "t" } },
      {
        kind: "SubjectAccessReview",
        spec: { ...rest, user, nonResourceAttributes: { path: "/metrics", verb: "get" } },
      },
    ]);
  });

  for (const [what, status] of [
    ["says no", { authenticated: false }],
    ["says no and still names a user", { authenticated: false, user: USER }],
    ["names no user", { authenticated: true, user: {} }],
    ["says nothing", undefined],
  ] as const) {
    it(`the review of who may read a path asks about no user if the API server ${what}`, async () => {
      const { ask, sent, statuses } = world();
      statuses["TokenReview"] = status;
      assert.equal(await ask(), "unauthenticated");
      assert.equal(sent.length, 1);
    });
  }

  for (const [what, status] of [
    ["says no", { allowed: false }],
    ["allows and denies", { allowed: true, denied: true }],
    ["says nothing", undefined],
  ] as const) {
    it(`the review of who may read a path forbids if the API server ${what}`, async () => {
      const { ask, statuses } = world();
      statuses["SubjectAccessReview"] = status;
      assert.equal(await ask(), "forbidden");
    });
  }

  it("the review of who may read a path keeps an allowance for a minute and a refusal for ten seconds, for that token and path alone", async () => {
    const { ask, sent, statuses, clock } = world();
    await ask();
    statuses["SubjectAccessReview"] = { allowed: false };
    await clock.advance(59_999);
    assert.equal(await ask(), "allowed");
    assert.equal(sent.length, 2);
    assert.equal(await ask("other"), "forbidden");
    assert.equal(await ask("t", "/other"), "forbidden");
    await clock.advance(1);
    assert.equal(await ask(), "forbidden");
    statuses["SubjectAccessReview"] = { allowed: true };
    await clock.advance(9_999);
    assert.equal(await ask(), "forbidden");
    await clock.advance(1);
    assert.equal(await ask(), "allowed");
  });

  it("the review of who may read a path is made once for all requests with the same token at the same moment", async () => {
    const { ask, sent, clock } = world(100);
    const asked = [ask(), ask(), ask()];
    await clock.advance(100);
    await clock.advance(100);
    assert.deepEqual(await Promise.all(asked), ["allowed", "allowed", "allowed"]);
    assert.equal(sent.length, 2);
  });

  it("the review of who may read a path runs at most 16 times at once, so that many new tokens do not load the API server", async () => {
    const { ask, sent, clock } = world(100);
    const first = Array.from({ length: 16 }, (_, index) => ask(`t${index}`));
    await assert.rejects(ask("one-more"), (error) => isKubeError(error, "TooManyRequests"));
    assert.equal(sent.length, 16);
    await clock.advance(100);
    await clock.advance(100);
    await Promise.all(first);
    const later = ask("one-more");
    await clock.advance(100);
    await clock.advance(100);
    assert.equal(await later, "allowed");
  });

  it("the access review of a path ends after 5 s, and is not remembered: no client gets in without an answer", async () => {
    const { ask, sent, clock } = world(60_000);
    const asked = assert.rejects(ask(), /did not end within 5000 ms/);
    await clock.advance(5_000);
    await asked;
    void ask().catch(() => undefined);
    assert.equal(sent.length, 2);
    await clock.advance(5_000);
  });

  it("the review of who may read a path is remembered for 256 tokens at most", async () => {
    const { ask, sent } = world();
    for (let token = 0; token < 257; token++) await ask(`t${token}`);
    sent.length = 0;
    await ask("t256");
    assert.equal(sent.length, 0);
    await ask("t0");
    assert.equal(sent.length, 2);
  });
});
