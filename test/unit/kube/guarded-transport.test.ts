import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isKubeError } from "../../../src/kube/errors.ts";
import { guardWrites } from "../../../src/kube/connection/transport/guarded-transport.ts";
import type { TransportRequest } from "../../../src/kube/transport.ts";
import { answer } from "./scripted-transport.ts";

const SIGNAL = new AbortController().signal;
const request = (method: TransportRequest["method"], lane: TransportRequest["lane"] = "api"): TransportRequest => ({
  method,
  path: "/api/v1/nodes/n1",
  lane,
  timeoutMs: 1_000,
});

describe("a process that may be without its lease", () => {
  const sent: string[] = [];
  const inner = {
    send: async ({ method, lane }: TransportRequest) => {
      sent.push(`${method} ${lane}`);
      return answer(200, {});
    },
    stream: () => Promise.reject(new Error("no watch here")),
    close: async () => undefined,
  };
  const transport = guardWrites(inner, () => false);

  for (const method of ["POST", "PUT", "PATCH", "DELETE"] as const) {
    it(`a process that may be without its lease sends no ${method}`, async () => {
      await assert.rejects(transport.send(request(method), SIGNAL), (error) => isKubeError(error, "Aborted"));
      assert.deepEqual(sent, []);
    });
  }

  it("a process that may be without its lease still reads, and still writes its lease", async () => {
    await transport.send(request("GET"), SIGNAL);
    await transport.send(request("PATCH", "lease"), SIGNAL);
    assert.deepEqual(sent, ["GET api", "PATCH lease"]);
  });

  it("a process that may be without its lease still asks for reviews, which change nothing", async () => {
    sent.length = 0;
    await transport.send(request("POST", "review"), SIGNAL);
    assert.deepEqual(sent, ["POST review"]);
  });
});
