import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import type { BareMetalHost } from "../../api/metal3/metal3.ts";
import { readBareMetalHost } from "../../api/metal3/metal3.ts";
import { findObject } from "../../kube/objects/find-object.ts";
import { Controller } from "../../kube/reconcile/controller.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import type { BareMetalHostDirectory } from "../hosts/bare-metal-host/directory.ts";
import { isFinal } from "../machine/model/decision/state.ts";
import { BARE_METAL_HOSTS } from "../hosts/bare-metal-host/store/host-store.ts";
import { offRequestersOf } from "../hosts/bare-metal-host/store/host-annotations.ts";
import { hostText } from "../hosts/bare-metal-host/store/power-path.ts";

export interface OrphanedOffRequestsDeps {
  runtime: KubeRuntime;
  directory: BareMetalHostDirectory;
  remediations: Watched<BareMetalRemediation>;
}

/**
 * Reports to the operator, once, each host with an off request of a remediation which is gone (its finalizer was
 * removed by force) or has ended (while this family was off), until `signal` aborts. The request stays, because the
 * host may be off for a reason that ironfence does not know. A further remediation of the same host takes it over.
 */
export async function reportOrphanedOffRequests(
  { runtime, directory, remediations }: OrphanedOffRequestsDeps,
  signal: AbortSignal,
): Promise<void> {
  const reported = new Set<string>();
  const controller: Controller = new Controller(runtime, {
    name: "orphaned-holds",
    concurrency: 1,
    reconcile: async (uid, running) => {
      const host = directory.index.byUid(uid);
      const requesters = host === undefined ? [] : offRequestersOf(host);
      if (requesters.length === 0) reported.delete(uid);
      if (host === undefined || requesters.length === 0 || reported.has(uid)) return;
      if (orphansAmong(requesters, remediations.values()).length === 0) return;
      // The watches may lag behind a remediation that has just begun or has just released the host.
      const { items } = await runtime.client.list<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, {}, running);
      const key = { namespace: host.metadata.namespace, name: host.metadata.name };
      const current = await findObject<KubeObject>(runtime.client, BARE_METAL_HOSTS, key, running);
      const gone = current === undefined ? [] : orphansAmong(offRequestersOf(readBareMetalHost(current)), items);
      if (gone.length === 0) return;
      reported.add(uid);
      report(runtime, host, gone);
    },
  });
  const unsubscribe = [
    directory.subscribe((uid) => {
      if (uid !== undefined) controller.enqueue(uid);
    }),
    remediations.subscribe(({ type, object }) => {
      const { target, phase } = object.status ?? {};
      if (target !== undefined && (type === "deleted" || isFinal(phase))) controller.enqueue(target.uid);
    }),
  ];
  for (const { metadata } of directory.index.values()) controller.enqueue(metadata.uid);
  try {
    await controller.run(signal);
  } finally {
    for (const stop of unsubscribe) stop();
  }
}

/** Requesters whose remediation is gone or has ended. */
function orphansAmong(requesters: readonly string[], remediations: Iterable<BareMetalRemediation>): string[] {
  const atWork = new Set<string>();
  for (const { metadata, status } of remediations) if (!isFinal(status?.phase)) atWork.add(metadata.uid);
  return requesters.filter((requester) => !atWork.has(requester));
}

function report(runtime: KubeRuntime, host: BareMetalHost, gone: readonly string[]): void {
  const note = `${hostText(host)} is kept off for BareMetalRemediation ${gone.join(", ")}, which is gone or has ended, and its changes were not undone: remediate its node again, or check the host and remove the annotations reboot.metal3.io/ironfence-*`;
  runtime.logger.error(
    { host: hostText(host), gone },
    "a host is kept off for a remediation that is gone or has ended",
  );
  runtime.events.record({ regarding: host, type: "Warning", reason: "RemediationLost", action: "Tend", note });
}
