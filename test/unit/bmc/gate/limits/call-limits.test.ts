import assert from "node:assert/strict";
import { test } from "node:test";
import { CallLimits } from "../../../../../src/bmc/gate/limits/call-limits.ts";
import { BmcError } from "../../../../../src/bmc/interface/errors.ts";

/** A call that the test ends. */
function heldCall(limits: CallLimits, key: string, callsMax: number, signal = new AbortController().signal) {
  const end = Promise.withResolvers<void>();
  const call = { started: false, end: end.resolve, fail: end.reject, done: Promise.resolve() };
  call.done = limits.run(key, callsMax, "call", signal, () => {
    call.started = true;
    return end.promise;
  });
  return call;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("calls under one key wait for each other in the order of arrival, those under another do not", async () => {
  const limits = new CallLimits();
  const [first, second, third] = [heldCall(limits, "a", 1), heldCall(limits, "a", 1), heldCall(limits, "a", 1)];
  const other = heldCall(limits, "b", 1);
  assert.deepEqual([first.started, second.started, third.started, other.started], [true, false, false, true]);
  first.end();
  await turn();
  assert.deepEqual([second.started, third.started], [true, false]);
  second.fail(new Error("failed"));
  await assert.rejects(second.done, /failed/);
  await turn();
  assert.ok(third.started, "a failed call gives its slot up like any other");
  for (const call of [third, other]) call.end();
  await Promise.all([first.done, third.done, other.done]);
});

test("no more calls run at once than the limit allows", async () => {
  const limits = new CallLimits();
  const calls = Array.from({ length: 6 }, () => heldCall(limits, "a", 4));
  assert.equal(calls.filter(({ started }) => started).length, 4);
  for (const call of calls) call.end();
  await Promise.all(calls.map(({ done }) => done));
  assert.ok(heldCall(limits, "a", 1).started, "all slots are free again");
});

test("a call that is aborted while it waits never starts, and delays no other call", async () => {
  const limits = new CallLimits();
  const abort = new AbortController();
  const first = heldCall(limits, "a", 1);
  const second = heldCall(limits, "a", 1, abort.signal);
  const third = heldCall(limits, "a", 1);
  abort.abort(new Error("lost the lease"));
  await assert.rejects(second.done, /lost the lease/);
  first.end();
  await turn();
  assert.deepEqual([second.started, third.started], [false, true]);
  third.end();
  await third.done;
});

test("no more than a bounded number waits", async () => {
  const limits = new CallLimits();
  const first = heldCall(limits, "a", 1);
  const waiting = Array.from({ length: 64 }, () => heldCall(limits, "a", 1));
  await assert.rejects(
    heldCall(limits, "a", 1).done,
    (error) => error instanceof BmcError && error.code === "Busy" && error.retryable,
  );
  for (const call of [first, ...waiting]) call.end();
  await Promise.all(waiting.map(({ done }) => done));
});
