import { BoundedReads } from "./bounded-reads.ts";
import { findLogs } from "./find-logs.ts";
import type { FoundLog } from "./find-logs.ts";
import { readLog } from "./read-log.ts";
import { readSensors } from "./read-sensors.ts";
import { EMPTY, linksAt, stringAt } from "../http/json.ts";
import type { Service } from "../session/service.ts";
import { isOfOneHost } from "../system/system.ts";
import type { System } from "../system/system.ts";
import { parseBmcTime } from "../../evidence/bmc-time.ts";
import type { BmcEvidence, BmcLogEntry } from "../../evidence/model.ts";
import { plainText } from "../../evidence/plain-text.ts";
import type { ReadingBudget } from "../../gate/limits/reading-budget.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withoutTrailingSlashes } from "../../../runtime/text/trailing-slashes.ts";

/**
 * Reads the evidence of a host next to the calls that fence it: first the clock of its BMC, then the logs, then the
 * sensors. What cannot be read is left out.
 *
 * @param system The System as the fence has read it. It is not read again, because it can be as large as the whole
 * budget.
 */
export async function readEvidence(
  service: Service,
  system: System,
  budget: ReadingBudget,
  clock: Clock,
  signal: AbortSignal,
): Promise<BmcEvidence> {
  const reads = new BoundedReads(service, budget, signal);
  const entries: BmcLogEntry[] = [];
  const [managerPath] = system.managers;
  const manager = managerPath === undefined ? undefined : await reads.get(managerPath);
  const zone = stringAt(manager?.body ?? EMPTY, "DateTimeLocalOffset");
  const bmcNowMs = parseBmcTime(manager?.body["DateTime"], zone) ?? parseBmcTime(reads.date);
  const clockAheadMs = bmcNowMs === undefined ? undefined : bmcNowMs - clock.nowMs();
  const collections = [
    system.logServices ?? `${withoutTrailingSlashes(system.path)}/LogServices`,
    ...(manager === undefined ? [] : linksAt(manager.body, "LogServices")),
  ];
  const [chassis] = system.chassis;
  let logs = 0;
  const readAll = async (found: AsyncGenerator<FoundLog>): Promise<void> => {
    for await (const log of found) {
      logs += 1;
      entries.push(...(await readLog(reads, log, zone)));
    }
  };
  await readAll(findLogs(reads, collections));
  // Older BMCs of Cisco have their log only in the Chassis.
  if (logs === 0 && chassis !== undefined) await readAll(findChassisLogs(reads, chassis, system, service));
  if (logs === 0) reads.note("the BMC shows no log of its hardware");
  const sensors = chassis === undefined ? [] : await readSensors(reads, chassis);
  const incomplete = budget.incomplete;
  return {
    clockAheadMs,
    entries,
    sensors,
    lastResetMs: parseBmcTime(system.lastReset, zone),
    incomplete: incomplete === undefined ? undefined : plainText(reads.hide(incomplete), 200),
  };
}

/** The logs of a Chassis that contains only this host. The log of an enclosure is also about other hosts. */
async function* findChassisLogs(
  reads: BoundedReads,
  path: string,
  system: System,
  service: Service,
): AsyncGenerator<FoundLog> {
  const chassis = await reads.get(path);
  if (chassis?.status !== 200 || !isOfOneHost(service.origin, chassis.body, system.paths)) return;
  yield* findLogs(reads, linksAt(chassis.body, "LogServices"));
}
