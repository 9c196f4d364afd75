import { EMPTY, arrayAt, stringAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { ResetAction } from "../../gate/memory/reset-actions.ts";
import { resetType } from "./reset-types.ts";
import type { Service } from "../session/service.ts";
import { parseAllowed } from "../system/system.ts";
import type { BmcErrorCode } from "../../interface/errors.ts";
import { BmcError } from "../../interface/errors.ts";
import { isRecord } from "../../../runtime/record.ts";

/** Failures after which the ActionInfo counts as missing. */
const INFO_UNREADABLE: ReadonlySet<BmcErrorCode> = new Set([
  "BadResponse",
  "PrivilegeTooLow",
  "Unsupported",
  "Refused",
]);

/** The path of the Reset action. @throws BmcError BadResponse if the action has no target on this service. */
export function resetTarget(origin: string, { target }: ResetAction): string {
  return pathOnOrigin(origin, target, "the target of the Reset action");
}

/** The reset type to send for an order; undefined if neither list of the service has one that does it. */
export async function chooseResetType(
  service: Service,
  wanted: "Off" | "On",
  reset: ResetAction,
  signal: AbortSignal,
): Promise<string | undefined> {
  const type = reset.allowedTypes === undefined ? undefined : resetType(wanted, reset.allowedTypes);
  return type ?? resetType(wanted, await readAllowedTypes(service, reset, signal));
}

/** All reset types that the service lists, next to the action and in its ActionInfo; undefined if it lists none. */
export async function readAllowedTypes(
  service: Service,
  reset: ResetAction,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const { allowedTypes } = reset;
  const inInfo = await typesOfInfo(service, reset, signal);
  if (allowedTypes === undefined || inInfo === undefined) return allowedTypes ?? inInfo;
  return [...new Set([...allowedTypes, ...inInfo])];
}

async function typesOfInfo(
  service: Service,
  reset: ResetAction,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  if (reset.actionInfo === undefined) return undefined;
  const path = pathOnOrigin(service.origin, reset.actionInfo, "the link to the Reset action's info");
  // An ActionInfo that cannot be read counts as missing, because it must not prevent a power-off.
  const info = await service.find(path, signal).catch((error: unknown) => {
    if (error instanceof BmcError && INFO_UNREADABLE.has(error.code)) return undefined;
    throw error;
  });
  return parseInfoTypes(info?.body ?? EMPTY);
}

/** The reset types that the ActionInfo of an action lists; undefined if it lists none. */
export function parseInfoTypes(info: JsonObject): readonly string[] | undefined {
  const parameters = (arrayAt(info, "Parameters") ?? []).filter((item) => isRecord(item));
  const parameter = parameters.find((item) => stringAt(item, "Name") === "ResetType");
  return parseAllowed(parameter ?? EMPTY, "AllowableValues");
}
