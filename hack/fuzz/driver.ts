import { must } from "./target.ts";
import type { FuzzTarget } from "./target.ts";
import { parseStatus } from "../../src/bmc/http-driver/answers.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";

// Fuzzes answers of driver servers. They come from servers that users write, and from any machine between agent and
// server.

const PRINTABLE = /^[^\p{Cc}]{1,1000}$/u;

const answers: FuzzTarget = {
  name: "driver answer",
  seeds: [
    '200 1 {"state":"Off","identity":{"systemUUID":"3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a44","serialNumber":"SN-1"}}',
    '200 1 {"state":"On","identity":{"manufacturer":"QEMU","model":"Standard PC"}}',
    '200 0 {"state":"Off","identity":{}}',
    '409 1 {"error":"another host"}',
    "302 0 ",
    "204 1 ",
  ].map((text) => Buffer.from(text)),
  run: (input) => {
    const [, status = "200", signed = "1", text = ""] = /^(\d{3}) ([01]) (.*)$/s.exec(input.toString("utf8")) ?? [];
    const answer = { status: Number(status), isProven: signed === "1", text };
    try {
      const { reading, identity } = parseStatus("status", "driver://server", answer);
      must(answer.isProven && answer.status === 200, "only a signed status counts");
      must(
        reading.state === "Unknown" || reading.state === reading.raw,
        "a state counts only as the contract spells it",
      );
      for (const value of [reading.raw, ...Object.values(identity)]) {
        must(value.length <= 200 && (value === "" || PRINTABLE.test(value)), "what is kept is short and printable");
      }
    } catch (error) {
      const isShown = !(error instanceof BmcError) || PRINTABLE.test(error.message);
      must(isShown, "a refusal is short and printable");
      throw error;
    }
  },
};

export const DRIVER_TARGETS: readonly FuzzTarget[] = [answers];
