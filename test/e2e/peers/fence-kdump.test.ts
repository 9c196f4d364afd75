import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { KdumpMessages } from "../../../src/remediator/kdump/kdump-messages.ts";
import { openKdumpSocket } from "../../../src/remediator/kdump/kdump-socket.ts";
import { until } from "../../integration/agent-fixture.ts";

/** The path of the program in Debian. The initramfs of a crash kernel runs the same program. */
const FENCE_KDUMP_SEND = "/usr/libexec/fence-agents/fence_kdump_send";
const SEND_TIMEOUT_MS = 20_000;

describe("fence_kdump_send of fence-agents", () => {
  for (const [host, to] of [
    ["127.0.0.1", "127.0.0.1"],
    ["::", "127.0.0.1"],
    ["::", "::1"],
  ] as const)
    it(`the messages that fence_kdump_send sends to ${to} are accepted by the socket at ${host}`, async () => {
      const counts = { accepted: 0, malformed: 0, unexpected: 0 };
      const messages = new KdumpMessages((result) => (counts[result] += 1));
      const socket = await openKdumpSocket({ host, port: 0 }, assert.fail);
      const unsubscribe = socket.subscribe((datagram, from) => messages.receive(datagram, from));
      const unfollow = messages.follow([to], () => undefined);
      try {
        const args = [`--ipport=${socket.port}`, "--family=auto", "--count=2", "--interval=1", to];
        await promisify(execFile)(FENCE_KDUMP_SEND, args, { timeout: SEND_TIMEOUT_MS });
        await until("both are accepted", () => counts.accepted === 2);
        assert.deepEqual(counts, { accepted: 2, malformed: 0, unexpected: 0 });
      } finally {
        unfollow();
        unsubscribe();
        await socket.close();
      }
    });
});
