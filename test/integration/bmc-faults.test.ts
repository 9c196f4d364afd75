import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { TestContext } from "node:test";
import { OPERATION_NAMES, runCells } from "./bmc-faults-cell.ts";
import type { Cell, CellWorld, Fault, Operation } from "./bmc-faults-cell.ts";
import { DRIVER_FAULTS, startDriverCell } from "./bmc-faults-driver.ts";
import { IPMI_FAULTS, startIpmiCell } from "./bmc-faults-ipmi.ts";
import { SNMP_FAULTS, startSnmpCell } from "./bmc-faults-snmp.ts";
import { REDFISH_FAULTS, schemeFor, startRedfishCell } from "./bmc-faults-redfish.ts";

// The fault matrix: each fault of each protocol with each operation of its driver. There is never a false Off, a call
// that outlives its deadline, or a success without an effect. Every error has the right code.

/** The IPMI driver has no check for obstacles to a power-off. */
const IPMI_OPERATIONS = OPERATION_NAMES.filter((operation) => operation !== "findOffObstacle");
/** Driver servers do not support boot overrides. */
const DRIVER_OPERATIONS = IPMI_OPERATIONS.filter((operation) => !operation.endsWith("BootOverride"));
/** Outlets do not support boot overrides either. */
const SNMP_OPERATIONS = OPERATION_NAMES.filter((operation) => !operation.endsWith("BootOverride"));

test("the matrix of BMC faults is the product of its lists, and large enough", () => {
  for (const [faults, cells, operations] of [
    [REDFISH_FAULTS, cellsOf(REDFISH_FAULTS, OPERATION_NAMES), 8],
    [IPMI_FAULTS, cellsOf(IPMI_FAULTS, IPMI_OPERATIONS), 7],
    [DRIVER_FAULTS, cellsOf(DRIVER_FAULTS, DRIVER_OPERATIONS), 5],
    [SNMP_FAULTS, cellsOf(SNMP_FAULTS, SNMP_OPERATIONS), 6],
  ] as const) {
    assert.ok(faults.length >= 25, `${faults.length} faults`);
    assert.equal(new Set(faults.map(({ name }) => name)).size, faults.length, "each has its own name");
    assert.equal(cells.length, faults.length * operations);
  }
  assert.deepEqual(OPERATION_NAMES, [
    "identify",
    "readPower",
    "forceOff",
    "on",
    "setBootOverride",
    "readBootOverride",
    "findOffObstacle",
    "close",
  ]);
});

test("the documented matrix of BMC faults is the tested one", () => {
  const page = readFileSync(new URL("../../docs/evidence/bmc-faults.md", import.meta.url), "utf8");
  for (const table of [
    tableOf(REDFISH_FAULTS, OPERATION_NAMES),
    tableOf(IPMI_FAULTS, IPMI_OPERATIONS),
    tableOf(DRIVER_FAULTS, DRIVER_OPERATIONS),
    tableOf(SNMP_FAULTS, SNMP_OPERATIONS),
  ]) {
    assert.ok(page.includes(table), `docs/evidence/bmc-faults.md must hold this table:\n\n${table}`);
  }
});

void describe("whatever a BMC does, a call ends in time and says nothing false", { concurrency: 2 }, () => {
  test("whatever a BMC does, a call ends in time and reports nothing false over Redfish", (context) =>
    runMatrix(context, "Redfish", REDFISH_FAULTS, OPERATION_NAMES, (fault) => startRedfishCell(schemeFor(fault))));
  test("whatever a BMC does, a call ends in time and reports nothing false over IPMI", (context) =>
    runMatrix(context, "IPMI", IPMI_FAULTS, IPMI_OPERATIONS, startIpmiCell));
  test("whatever a driver server does, a call ends in time and reports nothing false", (context) =>
    runMatrix(context, "driver server", DRIVER_FAULTS, DRIVER_OPERATIONS, startDriverCell));
  test("whatever a PDU does, a call ends in time and reports nothing false", (context) =>
    runMatrix(context, "SNMP", SNMP_FAULTS, SNMP_OPERATIONS, startSnmpCell));
});

function cellsOf<World>(faults: readonly Fault<World>[], operations: readonly Operation[]): Cell<World>[] {
  return faults.flatMap((fault) => operations.map((operation) => ({ fault, operation })));
}

async function runMatrix<World extends CellWorld>(
  context: TestContext,
  protocol: string,
  faults: readonly Fault<World>[],
  operations: readonly Operation[],
  start: (fault: Fault<World>) => Promise<World>,
): Promise<void> {
  const cells = cellsOf(faults, operations);
  const { counts, failures } = await runCells(cells, start);
  const outcomes = [...counts]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([outcome, count]) => `${outcome} ${count}`);
  const size = `${faults.length} faults x ${operations.length} operations = ${cells.length} cells`;
  context.diagnostic(`fault matrix, ${protocol}: ${size}, ${failures.length} wrong: ${outcomes.join(", ")}`);
  if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join("\n"));
}

/** The matrix as a table for the documentation. */
function tableOf<World>(faults: readonly Fault<World>[], operations: readonly Operation[]): string {
  const shown = operations.filter((operation) => operation !== "close");
  const rows = faults.map(({ name, outcomes }) => [
    name,
    ...shown.map((operation) => [outcomes[operation] ?? "ok"].flat().join(" / ")),
  ]);
  const head = ["fault", ...shown];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
