import type { Body } from "./answer.ts";

/** The path of the service. */
export const ROOT = "/redfish/v1";

/** The schemas that the mock's resources follow (DSP8010), by type. */
export const SCHEMA_VERSIONS = {
  ServiceRoot: "v1_16_1",
  ComputerSystem: "v1_22_0",
  Chassis: "v1_25_0",
  Manager: "v1_19_0",
  ActionInfo: "v1_4_0",
  SessionService: "v1_1_9",
  Session: "v1_7_2",
  AccountService: "v1_15_1",
  ManagerAccount: "v1_12_1",
  Role: "v1_3_2",
  TaskService: "v1_2_1",
  Task: "v1_7_3",
  LogService: "v1_5_1",
  LogEntry: "v1_16_1",
} as const;

/** Types of collections. They have no versions. */
export const COLLECTION_TYPES = [
  "ComputerSystemCollection",
  "ChassisCollection",
  "ManagerCollection",
  "SessionCollection",
  "ManagerAccountCollection",
  "RoleCollection",
  "TaskCollection",
  "LogServiceCollection",
  "LogEntryCollection",
] as const;

/** A resource with the properties that all resources have. */
export function resource(
  type: keyof typeof SCHEMA_VERSIONS,
  path: string,
  id: string,
  name: string,
  properties: Body,
): Body {
  return {
    "@odata.context": `${ROOT}/$metadata#${type}.${type}`,
    "@odata.id": path,
    "@odata.type": `#${type}.${SCHEMA_VERSIONS[type]}.${type}`,
    Id: id,
    Name: name,
    ...properties,
  };
}

/** A collection of the resources at `members`. */
export function collection(
  type: (typeof COLLECTION_TYPES)[number],
  path: string,
  name: string,
  members: readonly string[],
): Body {
  return {
    "@odata.context": `${ROOT}/$metadata#${type}.${type}`,
    "@odata.id": path,
    "@odata.type": `#${type}.${type}`,
    Name: name,
    Members: members.map(link),
    "Members@odata.count": members.length,
  };
}

/** A reference to a resource. */
export function link(path: string): Body {
  return { "@odata.id": path };
}

export const ENABLED = { State: "Enabled", Health: "OK" } as const;
