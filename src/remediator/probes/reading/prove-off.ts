import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget, OffProof } from "../../../api/ironfence/fencing-target.ts";
import { outageOf } from "../../../api/kubernetes/outage.ts";
import { BmcError } from "../../../bmc/interface/errors.ts";
import { levelPower } from "../../../bmc/topology/level-readings.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { sleep } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import { toTime } from "../../../runtime/time.ts";
import { OFF_CONFIRM_GAP_MS } from "../../machine/model/decision/timings.ts";
import type { OpenedDevice } from "../../hosts/fencing-target/devices.ts";
import { identityJudge } from "../../hosts/model/identity.ts";
import { showsLife } from "./node-alive.ts";
import { decidingLevel } from "../report/target-status.ts";
import { required } from "../report/target-conditions.ts";
import type { DeviceProbe } from "../schedule/probe-result.ts";

/** The deadline for the second reading. */
const REREAD_TIMEOUT_MS = 15_000;

/**
 * Proves that the host of a node that is not Ready is off: by the readings of a probe, and by a second reading of the
 * deciding devices right after it. Their identity must match, even if the target waives that check, and the node must
 * show no sign of life: a host with a live kubelet is on, whatever its BMC reports.
 *
 * @param node the node as it was before the first reading.
 * @returns undefined in case of doubt. A failure of a device is a doubt, and is not thrown.
 */
export async function proveOff(
  runtime: KubeRuntime,
  target: FencingTarget,
  node: Node | undefined,
  opened: readonly OpenedDevice[],
  probes: readonly DeviceProbe[],
  signal: AbortSignal,
): Promise<OffProof | undefined> {
  const outage = outageOf(node);
  const { level, state } = decidingLevel(probes);
  if (node === undefined || outage === undefined || state !== "Off") return undefined;
  const answers = level.flatMap((device) => (device.ok ? [device.identity] : []));
  if (!identityJudge(required(target), node.status.nodeInfo?.systemUUID)(answers).verified) return undefined;
  await sleep(runtime.clock, OFF_CONFIRM_GAP_MS, signal);
  const devices = level.flatMap(({ index }) => opened[index] ?? []);
  const second = await Promise.all(devices.map((device) => reread(runtime, device, signal)));
  const readings = second.flatMap((reading) => reading ?? []);
  if (levelPower(readings, level.length).state !== "Off") return undefined;
  const time = toTime(runtime.clock.nowMs());
  return (await showsLife(runtime, node, signal)) ? undefined : { time, ...outage };
}

async function reread(runtime: KubeRuntime, { address, driver }: OpenedDevice, signal: AbortSignal) {
  try {
    return await withDeadline(runtime.clock, `second reading of ${address}`, REREAD_TIMEOUT_MS, signal, (signal) =>
      driver.readPower(signal),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof BmcError) && !(error instanceof DeadlineError)) throw error;
    return undefined;
  }
}
