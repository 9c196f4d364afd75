import type { Clock } from "../../src/runtime/clock.ts";
import type { Bmc } from "../rack/bmc.ts";
import type { AccountTable, Privilege } from "./accounts.ts";
import type { Answer, Body } from "./answer.ts";
import type { SessionTable } from "./sessions.ts";
import type { TaskTable } from "./tasks.ts";

/** How power orders are answered. */
export interface OrderStyle {
  /** Answer 202 with a task instead of 204. */
  task?: { retryAfterSeconds: number; endless: boolean };
  /** Answer an order that would change nothing with this status instead of success. */
  refuseNoChangeStatus?: number;
}

/** One method that changes something. */
export interface Operation {
  /** The privilege that the caller needs; undefined if no login is needed. */
  privilege: Privilege | undefined;
  run: (body: Body, style: OrderStyle) => Answer;
}

/** One URI and its methods. */
export interface Endpoint {
  /** Handles GET; a string is XML. Absent for actions. */
  get?: () => Body | string;
  /** Handles GET of a task monitor, whose answer is not always 200. */
  getAnswer?: () => Answer;
  /** Whether reading needs no login, as for the service root. */
  isPublic?: boolean;
  POST?: Operation;
  PATCH?: Operation;
  DELETE?: Operation;
}

/** How a System reports its reset types: a list next to the action, an ActionInfo resource, or not at all. */
export type ResetTypesIn = "AllowableValues" | "ActionInfo" | "nowhere";

/**
 * Where the boot override of a System is changed: in the System, or in the settings object that it names, as with some
 * vendors.
 */
export type BootIn = "System" | "Settings";

/** The state of one Redfish service. */
export interface ServiceState {
  readonly clock: Clock;
  readonly uuid: string;
  /** BMCs by the id of their System. */
  readonly bmcs: ReadonlyMap<string, Bmc>;
  readonly resetTypesIn: ResetTypesIn;
  readonly bootIn: BootIn;
  readonly accounts: AccountTable;
  readonly sessions: SessionTable;
  readonly tasks: TaskTable;
}
