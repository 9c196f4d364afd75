import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { BmcGate } from "../../../../src/bmc/gate/bmc-gate.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const BMC = fileURLToPath(new URL("../../../../src/bmc", import.meta.url));
const STATE = /^(?:export )?(?:let |const \w+(?:: [^=]+)? = new (?:Weak)?(?:Map|Set)(?:<[^(]*>)?\(\))/m;

test("no module of src/bmc keeps state of its own: all of it is in the gate or in a driver", () => {
  const stateful = globSync("**/*.ts", { cwd: BMC }).filter((file) =>
    STATE.test(readFileSync(join(BMC, file), "utf8")),
  );
  assert.deepEqual(stateful, []);
  for (const text of [
    "let used = 0;",
    "const contexts = new Map<string, SecureContext>();",
    "const A = new WeakMap();",
  ]) {
    assert.match(text, STATE);
  }
});

test("one BMC has one mutex in a gate for as long as a caller needs it", () => {
  const { mutexes } = new BmcGate(new VirtualClock());
  const first = mutexes.acquire("bmc-1");
  const second = mutexes.acquire("bmc-1");
  assert.equal(first.mutex, second.mutex);
  assert.notEqual(mutexes.acquire("bmc-2").mutex, first.mutex);
  first.release();
  assert.equal(mutexes.acquire("bmc-1").mutex, second.mutex);
});
