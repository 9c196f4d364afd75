import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { KdumpMessages } from "../../../../src/remediator/kdump/kdump-messages.ts";
import type { KdumpResult } from "../../../../src/remediator/kdump/kdump-messages.ts";

const MESSAGE = Buffer.from("402a301b01000000", "hex");

function counted(): { messages: KdumpMessages; results: KdumpResult[] } {
  const results: KdumpResult[] = [];
  return { messages: new KdumpMessages((result) => results.push(result)), results };
}

describe("messages of crash kernels by address", () => {
  for (const [reported, from] of [
    ["10.0.0.1", "10.0.0.1"],
    ["10.0.0.1", "::ffff:10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["FD00:0::1", "fd00::1"],
    ["fe80::1", "fe80::1%eth0"],
  ] as const)
    it(`a message of a crash kernel from ${from} is assigned to the node that reports ${reported}`, () => {
      const { messages, results } = counted();
      let received = 0;
      messages.follow(["n1", reported, reported], () => (received += 1));
      messages.receive(MESSAGE, from);
      assert.deepEqual([received, results], [1, ["accepted"]]);
    });

  it("messages of crash kernels by address reach each that follows the address, until it stops following", () => {
    const { messages, results } = counted();
    const received: string[] = [];
    const unfollow = messages.follow(["10.0.0.1", "10.0.0.2"], () => received.push("a"));
    messages.follow(["10.0.0.1"], () => received.push("b"));
    messages.receive(MESSAGE, "10.0.0.1");
    unfollow();
    messages.receive(MESSAGE, "10.0.0.1");
    messages.receive(MESSAGE, "10.0.0.2");
    assert.deepEqual(received, ["a", "b", "b"]);
    assert.deepEqual(results, ["accepted", "accepted", "unexpected"]);
  });

  it("messages of crash kernels by address reach nothing from another address, or if they are not whole", () => {
    const { messages, results } = counted();
    messages.follow(["10.0.0.1", "n1", ""], assert.fail);
    messages.receive(MESSAGE, "10.0.0.11");
    messages.receive(MESSAGE, "n1");
    messages.receive(MESSAGE.subarray(1), "10.0.0.1");
    messages.receive(Buffer.from("402a301b02000000", "hex"), "10.0.0.1");
    assert.deepEqual(results, ["unexpected", "unexpected", "malformed", "malformed"]);
  });
});
