import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PowerState } from "../../../src/bmc/interface/driver.ts";
import { BmcError } from "../../../src/bmc/interface/errors.ts";
import { CommandFailure, CommandRefusal } from "../../../src/cli/errors/failures.ts";
import type { CliContext } from "../../../src/cli/terminal/context.ts";
import type { OrderResult } from "../../../src/cli/hosts/power-order.ts";
import { orderPowerByHand } from "../../../src/cli/hosts/power-order.ts";
import type { Order, SelectedHost } from "../../../src/cli/hosts/selected-host.ts";
import { systemRandom } from "../../../src/runtime/system.ts";
import { openDeviceOn } from "../../lib/open-device.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

interface Script {
  /** The readings of the BMC in order, the last one repeatedly. */
  reads: readonly PowerState[];
  /** The results of the orders in order; undefined is a success. */
  failures?: readonly (BmcError | undefined)[];
  /** The results of the checks: objections to the order, or a refusal. */
  checks?: readonly (readonly string[] | CommandRefusal)[];
  answer?: string;
  timeoutMs?: number;
}

/** Sends one order to a scripted host on a clock that runs by itself. */
async function run(
  order: Order,
  script: Script,
): Promise<{ result: OrderResult | Error; calls: string[]; notes: string }> {
  const clock = new VirtualClock();
  const calls: string[] = [];
  let [reads, checks, orders] = [0, 0, 0];
  const send = (name: string) => async (): Promise<void> => {
    calls.push(name);
    const failure = script.failures?.[orders++];
    if (failure !== undefined) throw failure;
  };
  const host: SelectedHost = {
    name: "host",
    check: async () => {
      calls.push("check");
      const found = script.checks?.[Math.min(checks++, script.checks.length - 1)] ?? [];
      if (found instanceof CommandRefusal) throw found;
      return { identity: "who it is", concerns: found };
    },
    readPower: async () => {
      const state = script.reads[Math.min(reads++, script.reads.length - 1)] ?? "Unknown";
      return { state, raw: state };
    },
    forceOff: send("forceOff"),
    on: send("on"),
  };
  let notes = "";
  const context: CliContext = {
    process: {
      stdout: { write: () => undefined },
      stderr: { write: (text: string) => void (notes += text) },
      env: {},
      exitCode: null,
    },
    clock,
    random: systemRandom,
    openDevice: openDeviceOn(clock),
    signal: new AbortController().signal,
    terminal: script.answer === undefined ? undefined : { ask: () => Promise.resolve(script.answer ?? "") },
  };
  const timeoutMs = script.timeoutMs ?? 60_000;
  const ended = orderPowerByHand(context, host, order, { timeoutMs, agreed: false }).catch((error: Error) => error);
  // Longer than the order may take. If the order waited longer, the test would not end.
  await clock.advance(timeoutMs + 10_000);
  return { result: await ended, calls, notes };
}

const proven = (result: OrderResult | Error): boolean => !(result instanceof Error) && result.proven;

describe("a power order by hand", () => {
  it("a power order by hand does not count one reading of Off as a proof", async () => {
    const flapping = await run("Off", { reads: ["Off", "On", "Off", "On"], timeoutMs: 10_000 });
    assert.equal(proven(flapping.result), false);
    const off = await run("Off", { reads: ["On", "Changing", "Off", "Off"] });
    assert.equal(proven(off.result), true);
    assert.deepEqual(off.calls, ["check", "forceOff"]);
  });

  it("a power order by hand is sent although the host reads Off already: that reading may be a lie", async () => {
    assert.deepEqual((await run("Off", { reads: ["Off"] })).calls, ["check", "forceOff"]);
  });

  it("a power order by hand is sent again, after a new check, if it has shown no effect for long or was refused for now", async () => {
    const forLong = Array.from({ length: 80 }, (): PowerState => "On");
    const ignored = await run("Off", { reads: [...forLong, "Off", "Off"] });
    assert.equal(proven(ignored.result), true);
    assert.deepEqual(ignored.calls, ["check", "forceOff", "check", "forceOff"]);
    const refusal = new BmcError("Refused", "not yet");
    const threeSeconds = Array.from({ length: 10 }, (): PowerState => "Off");
    const tooSoon = await run("On", { reads: [...threeSeconds, "On"], failures: [refusal] });
    assert.equal(proven(tooSoon.result), true);
    assert.deepEqual(tooSoon.calls, ["check", "on", "check", "on"]);
    assert.match(tooSoon.notes, /the BMC refused it for now \(not yet\)/);
  });

  it("a power order by hand is not sent again if its answer was lost and the host is on its way", async () => {
    const lost = await run("Off", {
      reads: [...Array.from({ length: 80 }, (): PowerState => "Changing"), "Off", "Off"],
      failures: [new BmcError("Timeout", "no answer")],
    });
    assert.equal(proven(lost.result), true);
    assert.deepEqual(lost.calls, ["check", "forceOff"]);
  });

  it("a power order by hand ends at once if more tries change nothing", async () => {
    const { result, calls } = await run("Off", { reads: ["On"], failures: [new BmcError("PrivilegeTooLow", "no")] });
    assert.ok(result instanceof BmcError);
    assert.deepEqual(calls, ["check", "forceOff"]);
  });

  it("a power order by hand is checked again after a person was asked, and not sent if that has changed the picture", async () => {
    const agreed = await run("Off", { reads: ["Off"], checks: [["the node is Ready"]], answer: "yes" });
    assert.deepEqual(agreed.calls, ["check", "check", "forceOff"]);
    const owned = new CommandRefusal("Refused", "a remediation owns the host now");
    const late = await run("Off", { reads: ["Off"], checks: [["the node is Ready"], owned], answer: "yes" });
    assert.equal(late.result, owned);
    assert.deepEqual(late.calls, ["check", "check"]);
    const taken = await run("Off", { reads: ["On"], checks: [[], owned] });
    assert.ok(taken.result instanceof CommandFailure, "nor is it repeated once another one owns the host");
    assert.equal(taken.result.message, owned.message);
    assert.deepEqual(taken.calls, ["check", "forceOff", "check"]);
  });
});
