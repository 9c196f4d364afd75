import assert from "node:assert/strict";
import type { Host } from "../../hack/rack/host.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { OffObstacle, PowerDriver, PowerState } from "../../src/bmc/interface/driver.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import type { BmcErrorCode } from "../../src/bmc/interface/errors.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { systemClock as clock, systemRandom as random } from "../../src/runtime/system.ts";
import { forever, PASSWORD } from "./bmc-fixture.ts";

// One cell of the fault matrix: one fault, one operation of one driver, on real sockets, compared with the true state
// of the host.

export const OPERATIONS = {
  identify: (device: PowerDriver) => device.identify(forever()),
  readPower: (device: PowerDriver) => device.readPower(forever()),
  forceOff: (device: PowerDriver) => device.forceOff(forever()),
  on: (device: PowerDriver) => device.on(forever()),
  setBootOverride: (device: PowerDriver) => device.setBootOverride("NetworkOnce", forever()),
  readBootOverride: (device: PowerDriver) => device.readBootOverride(forever()),
  findOffObstacle: (device: PowerDriver) => device.findOffObstacle?.(forever()) ?? Promise.resolve(undefined),
  close: (device: PowerDriver) => device.close(),
} as const satisfies Record<string, (device: PowerDriver) => Promise<unknown>>;

export type Operation = keyof typeof OPERATIONS;
export const OPERATION_NAMES = Object.keys(OPERATIONS) as Operation[];
const READS: readonly Operation[] = ["identify", "readPower", "readBootOverride", "findOffObstacle"];
const ORDERS: readonly Operation[] = ["forceOff", "on"];
const CHANGES: readonly Operation[] = [...ORDERS, "setBootOverride"];

/**
 * What an operation comes to; an obstacle is what a probe finds in the way to Off. Several, where it depends on which
 * of two deadlines is first.
 */
export type Outcome = "ok" | BmcErrorCode | OffObstacle["reason"];
export type Expected = Outcome | readonly Outcome[];

export interface Fault<World> {
  name: string;
  /** Before the first call, or within a session that works. */
  when: "first" | "later";
  /** What the operations come to; `ok` for those that are not named. `close` is never anything else. */
  outcomes: Partial<Record<Operation, Expected>>;
  strike(world: World): void;
  /** What `readPower` shows where it succeeds, if that matters. */
  reading?: PowerState;
  /** The session begins with the host's identity, which later log-ins are compared with. */
  identified?: boolean;
  /** Only a deadline ends it, so the deadlines are short. */
  waits?: boolean;
  /** The BMC reports a false Off, or the Off of another host: no driver can notice (see bmc-faults-proof.test.ts). */
  lies?: boolean;
  /** Each log-in has been ended once the device is closed. */
  endsSessions?: boolean;
  /** The BMC says yes to orders, and the host does not get them, or only later. */
  promises?: boolean;
}

/** For faults that all operations meet alike. */
export function all(expected: Expected): Partial<Record<Operation, Expected>> {
  return each([...READS, ...CHANGES], expected);
}
export function reads(expected: Expected): Partial<Record<Operation, Expected>> {
  return each(READS, expected);
}
export function orders(expected: Expected): Partial<Record<Operation, Expected>> {
  return each(ORDERS, expected);
}
/** Orders and the boot override. */
export function changes(expected: Expected): Partial<Record<Operation, Expected>> {
  return each(CHANGES, expected);
}
function each(operations: readonly Operation[], expected: Expected): Partial<Record<Operation, Expected>> {
  return Object.fromEntries(operations.map((operation) => [operation, expected]));
}

/**
 * Where a fault strikes: a host that stays on for longer than any cell lasts, unless the fault powers it off, and
 * another one that is off.
 */
export interface CellWorld {
  rack: Rack;
  host: Host;
  clock: CellClock;
  open(timeouts: { callTimeoutMs: number; connectTimeoutMs: number }): PowerDriver;
  /** Sessions that are open on the BMC. */
  sessionCount(): number;
  close(): Promise<void>;
}

/**
 * The machine's clock, whose timers can be stretched: a busy machine must not run into short deadlines before the
 * fault.
 */
export interface CellClock extends Clock {
  stretch: number;
}

/** Each cell has its own: drivers of one clock share a breaker of refused logins by port, and ports come again. */
export function cellClock(): CellClock {
  const stretched: CellClock = {
    ...clock,
    stretch: 1,
    schedule: (delayMs, callback) => clock.schedule(delayMs * stretched.stretch, callback),
  };
  return stretched;
}

export function cellRack(): Rack {
  const slow = { powerOffDelayMs: 600_000, powerOnDelayMs: 600_000, restorePolicy: "AlwaysOff" } as const;
  return createRack({
    clock,
    random,
    hosts: [
      { name: "one", ...slow },
      { name: "other", power: "Off", ...slow },
    ],
  });
}

const PATIENT = { callTimeoutMs: 20_000, connectTimeoutMs: 10_000 };
const SHORT = { callTimeoutMs: 3_000, connectTimeoutMs: 1_500 };
/** How much later than its deadline a call may be seen to end, on a machine that is busy. */
const LATE_MS_MAX = 30_000;
const WARM_UP_STRETCH = 20;

/** A cell of the matrix, as far as it can be known without running it. */
export interface Cell<World> {
  fault: Fault<World>;
  operation: Operation;
}

/**
 * Sets one cell up: the world, the driver, its session, and the fault.
 *
 * @returns what runs the operation and reports its result. @throws AssertionError if the result is wrong.
 */
async function prepareCell<World extends CellWorld>(
  { fault, operation }: Cell<World>,
  start: (fault: Fault<World>) => Promise<World>,
): Promise<() => Promise<Outcome>> {
  const label = `${operation} with ${fault.name}`;
  const world = await start(fault);
  const timeouts = fault.waits === true ? SHORT : PATIENT;
  const device = world.open(timeouts);
  // A driver that was never used has nothing to close.
  if (fault.when === "later" || operation === "close") {
    world.clock.stretch = WARM_UP_STRETCH;
    await warmUp(device);
    if (fault.identified === true) await device.identify(forever());
    world.clock.stretch = 1;
  }
  fault.strike(world);
  return async () => {
    try {
      const { outcome: ended, value } = await outcomeOf(OPERATIONS[operation](device), timeouts.callTimeoutMs, label);
      const obstacle = operation === "findOffObstacle" ? (value as OffObstacle | undefined) : undefined;
      const outcome = obstacle?.reason ?? ended;
      const expected = [fault.outcomes[operation] ?? "ok"].flat();
      assert.ok(expected.includes(outcome), `${label}: ${outcome} in place of ${expected.join(" or ")}`);
      judge(label, { fault, operation, outcome, value, host: world.host });
      await device.close();
      if (fault.endsSessions === true) assert.equal(world.sessionCount(), 0, `${label}: a session is left`);
      return outcome;
    } finally {
      await device.close();
      await world.close();
    }
  };
}

/** Cells that are set up or use the processor at once; those that wait do so at the same time, all together. */
const WIDTH = 8;

/** Runs cells. @returns how many came to each outcome, and what was wrong. */
export async function runCells<World extends CellWorld>(
  cells: readonly Cell<World>[],
  start: (fault: Fault<World>) => Promise<World>,
): Promise<{ counts: ReadonlyMap<Outcome, number>; failures: readonly unknown[] }> {
  const counts = new Map<Outcome, number>();
  const failures: unknown[] = [];
  const waiting: Promise<void>[] = [];
  const queue = cells.values();
  const finish = async (run: () => Promise<Outcome>): Promise<void> => {
    try {
      const outcome = await run();
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    } catch (error) {
      failures.push(error);
    }
  };
  const work = async (): Promise<void> => {
    for (const cell of queue) {
      try {
        const run = await prepareCell(cell, start);
        if (cell.fault.waits === true) waiting.push(finish(run));
        else await finish(run);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, work));
  await Promise.all(waiting);
  return { counts, failures };
}

/** A first reading, which works, and costs the time of a login. */
async function warmUp(device: PowerDriver): Promise<void> {
  assert.equal((await device.readPower(forever())).state, "On", "the host is on to begin with");
}

async function outcomeOf(
  call: Promise<unknown>,
  timeoutMs: number,
  label: string,
): Promise<{ outcome: Outcome; value?: unknown }> {
  const over = new AbortController();
  const hang = sleep(clock, timeoutMs + LATE_MS_MAX, over.signal).then(
    () => assert.fail(`${label}: a call that does not end`),
    () => undefined,
  );
  try {
    return { value: await Promise.race([call, hang]), outcome: "ok" };
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    assert.ok(error instanceof BmcError, `${label}: ${String(error)}`);
    assert.ok(!error.message.includes(PASSWORD), `${label}: the message holds the password`);
    return { outcome: error.code };
  } finally {
    over.abort();
  }
}

/** What must never be, whatever the fault. */
function judge(
  label: string,
  cell: { fault: Fault<never>; operation: Operation; outcome: Outcome; value: unknown; host: Host },
): void {
  const { fault, operation, outcome, value, host } = cell;
  if (operation === "readPower" && outcome === "ok") {
    const { state } = value as { state: string };
    assert.ok(fault.lies === true || state !== "Off" || host.power === "Off", `${label}: a false Off`);
    if (fault.reading !== undefined) assert.equal(state, fault.reading, label);
  }
  if (operation === "identify" && outcome === "ok" && fault.lies !== true) {
    const { systemUUID, serialNumber } = value as { systemUUID?: string; serialNumber?: string };
    assert.ok(systemUUID === undefined || systemUUID === host.spec.systemUUID, `${label}: another host's UUID`);
    assert.ok(serialNumber === undefined || serialNumber === host.spec.serialNumber, `${label}: another serial number`);
  }
  const wanted = operation === "forceOff" ? "ForceOff" : operation === "on" ? "On" : undefined;
  for (const { type } of host.orders) assert.equal(type, wanted, `${label}: an order that was not given`);
  if (wanted !== undefined && outcome === "ok" && fault.promises !== true && operation === "forceOff") {
    assert.ok(host.orders.length > 0 || !host.mains, `${label}: success of an order that the host has not received`);
  }
  if (operation === "setBootOverride" && outcome === "ok" && fault.promises !== true) {
    assert.equal(host.bootSetting.target, "Pxe", `${label}: success of a setting that was not made`);
  }
}
