import type { Clock } from "../../src/runtime/clock.ts";
import type { Bmc } from "../rack/bmc.ts";
import type { AccountTable, Privilege } from "./accounts.ts";
import type { Answer, Body } from "./answer.ts";
import type { SessionTable } from "./sessions.ts";
import type { TaskTable } from "./tasks.ts";

/** How power orders are answered. */
export interface OrderStyle {
  /** 202 with a task instead of 204. */
  task?: { retryAfterSeconds: number; endless: boolean };
  /** This status for an order that would change nothing, instead of success. */
  refuseNoChangeStatus?: number;
}

/** One method that changes something. */
export interface Operation {
  /** What the caller's role must allow; undefined: no login is needed. */
  privilege: Privilege | undefined;
  run: (body: Body, style: OrderStyle) => Answer;
}

/** One URI: what may be done with it. */
export interface Endpoint {
  /** Reads it; a string is XML. Absent for actions. */
  get?: () => Body | string;
  /** Reads something other than a resource: a task monitor, whose answer is not always 200. */
  getAnswer?: () => Answer;
  /** Reading needs no login: the service root and its like. */
  isPublic?: boolean;
  POST?: Operation;
  PATCH?: Operation;
  DELETE?: Operation;
}

/** How a System reports its reset types: a list next to the action, an ActionInfo resource, or not at all. */
export type ResetTypesIn = "AllowableValues" | "ActionInfo" | "nowhere";

/**
 * Where a System's boot override is changed: in itself, or in the settings object that it names, as some vendors want
 * it.
 */
export type BootIn = "System" | "Settings";

/** What one Redfish service holds. */
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
