import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { StatusChange } from "../../hosts/fencing-target/target-store.ts";
import { readyOf } from "../../hosts/fencing-target/target-store.ts";
import type { ForeignReset } from "./reset-history.ts";

/** Reports that a target has become ready, or needs attention; nothing if its condition Ready is as before. */
export function reportReady(runtime: KubeRuntime, target: FencingTarget, change: StatusChange): void {
  const { namespace, name } = target.metadata;
  const was = readyOf(target.status);
  const is = readyOf({ conditions: change.conditions ?? [] });
  if (is === undefined || (is.status === was?.status && is.reason === was.reason)) return;
  const type = is.status === "True" && is.reason === "Usable" ? "Normal" : "Warning";
  runtime.events.record({ regarding: target, type, reason: is.reason, action: "Probe", note: is.message });
  const fields = {
    target: `${namespace}/${name}`,
    node: target.spec.nodeName,
    reason: is.reason,
    detail: is.message,
  };
  if (type === "Normal") runtime.logger.info(fields, "fencing target is ready");
  else runtime.logger.warn(fields, "fencing target needs attention");
}

/** Reports a reset of the host that this agent did not order: another agent may have access to its BMC. */
export function reportForeignReset(runtime: KubeRuntime, target: FencingTarget, found: ForeignReset): void {
  const { namespace, name } = target.metadata;
  const note = `the host was reset at ${found.time} (clock of ${found.address}), and not by this agent: its OS rebooted, or a user or another agent with access to this BMC reset it`;
  runtime.events.record({ regarding: target, type: "Warning", reason: "ResetByOthers", action: "Probe", note });
  const fields = { target: `${namespace}/${name}`, node: target.spec.nodeName, address: found.address };
  runtime.logger.warn({ ...fields, resetTime: found.time }, "the host was reset, and not by this agent");
}
