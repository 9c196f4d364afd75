import { toTime } from "../../src/runtime/time.ts";
import type { Bmc } from "../rack/bmc.ts";
import { LOGGED } from "../rack/event-log.ts";
import type { LoggedEvent } from "../rack/event-log.ts";
import type { Body } from "./answer.ts";
import type { Endpoint } from "./endpoint.ts";
import { collection, ENABLED, link, resource } from "./resource.ts";

// The event log of a host: one log under its System, the oldest entry first.

export function logServicesPath(systemPath: string): string {
  return `${systemPath}/LogServices`;
}

/** The endpoint of a path under the collection of logs; undefined if there is none. */
export function findLogEndpoint(systemPath: string, rest: string, bmc: Bmc): Endpoint | undefined {
  const services = logServicesPath(systemPath);
  const log = `${services}/SEL`;
  if (rest === "") return { get: () => collection("LogServiceCollection", services, "Logs", [log]) };
  if (rest === "SEL") return { get: () => logService(log, bmc) };
  if (rest === "SEL/Entries") return { get: () => entriesBody(log, bmc) };
  const event = bmc.log.find(({ id }) => rest === `SEL/Entries/${id}`);
  return event && { get: () => entryBody(log, event) };
}

function logService(path: string, bmc: Bmc): Body {
  return resource("LogService", path, "SEL", "System event log", {
    DateTime: toTime(bmc.nowMs()),
    DateTimeLocalOffset: "+00:00",
    OverWritePolicy: "WrapsWhenFull",
    Status: ENABLED,
    Entries: link(`${path}/Entries`),
  });
}

function entriesBody(log: string, bmc: Bmc): Body {
  const path = `${log}/Entries`;
  return {
    ...collection("LogEntryCollection", path, "Entries", []),
    Members: bmc.log.map((event) => entryBody(log, event)),
    "Members@odata.count": bmc.log.length,
  };
}

function entryBody(log: string, { id, bmcTimeMs, kind }: LoggedEvent): Body {
  const { message, severity } = LOGGED[kind];
  return resource("LogEntry", `${log}/Entries/${id}`, String(id), `Entry ${id}`, {
    EntryType: "Event",
    Created: toTime(bmcTimeMs),
    Severity: severity,
    Message: message,
  });
}
