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

// One cell of the fault matrix: one fault and one operation of one driver, over real sockets. The result is compared
// with the real state of the host.

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

/** The result of an operation. For a probe it is the obstacle to a power-off. */
export type Outcome = "ok" | BmcErrorCode | OffObstacle["reason"];
export type Expected = Outcome | readonly Outcome[];

export interface Fault<World> {
  name: string;
  /** Whether the fault occurs before the first call or in a working session. */
  when: "first" | "later";
  /**
   * Expected results by operation; `ok` by default. `close` always succeeds. Several results are listed if it depends
   * on the first of two deadlines.
   */
  outcomes: Partial<Record<Operation, Expected>>;
  strike(world: World): void;
  /** The expected power state if `readPower` succeeds. */
  reading?: PowerState;
  /** The session begins with an identity check, and later logins compare with that identity. */
  identified?: boolean;
  /** Only a deadline ends the operation, so the deadlines are short. */
  waits?: boolean;
  /** The BMC reports a false Off, or the Off of another host: no driver can notice (see bmc-faults-proof.test.ts). */
  lies?: boolean;
  /** Every session is ended when the device is closed. */
  endsSessions?: boolean;
  /** The BMC accepts orders, but the host does not get them, or gets them later. */
  promises?: boolean;
}

/** The same result for all operations. */
export function all(expected: Expected): Partial<Record<Operation, Expected>> {
  return each([...READS, ...CHANGES], expected);
}
export function reads(expected: Expected): Partial<Record<Operation, Expected>> {
  return each(READS, expected);
}
export function orders(expected: Expected): Partial<Record<Operation, Expected>> {
  return each(ORDERS, expected);
}
/** The same result for orders and the boot override. */
export function changes(expected: Expected): Partial<Record<Operation, Expected>> {
  return each(CHANGES, expected);
}
function each(operations: readonly Operation[], expected: Expected): Partial<Record<Operation, Expected>> {
  return Object.fromEntries(operations.map((operation) => [operation, expected]));
}

/**
 * The world of a fault: a host that stays on during the cell, unless the fault powers it off, and another host that is
 * off.
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
 * The clock of the machine with timers that can be stretched, so that short deadlines do not expire before the fault on
 * a busy machine.
 */
export interface CellClock extends Clock {
  stretch: number;
}

/** Each cell has its own clock. Drivers with the same clock share refused logins by port, and ports are reused. */
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
/** How long after its deadline a call may end on a busy machine. */
const LATE_MS_MAX = 30_000;
const WARM_UP_STRETCH = 20;

/** A cell of the matrix before it is run. */
export interface Cell<World> {
  fault: Fault<World>;
  operation: Operation;
}

/**
 * Prepares one cell: the world, the driver, its session, and the fault.
 *
 * @returns a function that runs the operation and returns its result. It throws AssertionError if the result is wrong.
 */
async function prepareCell<World extends CellWorld>(
  { fault, operation }: Cell<World>,
  start: (fault: Fault<World>) => Promise<World>,
): Promise<() => Promise<Outcome>> {
  const label = `${operation} with ${fault.name}`;
  const world = await start(fault);
  const timeouts = fault.waits === true ? SHORT : PATIENT;
  const device = world.open(timeouts);
  // A driver must be used once before `close` has something to do.
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

/** How many cells are prepared or use the CPU at the same time. Cells that only wait run all together. */
const WIDTH = 8;

/** Runs cells. @returns the number of cells by outcome, and the errors. */
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

/** Reads the power once without a fault, which includes the login. */
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

/** Asserts what must hold for every fault. */
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
