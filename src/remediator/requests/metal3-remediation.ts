import { NODE_AT_CREATION, NODE_READY_IN_BOOT, REFUSED, SERVED_BY } from "../../api/names/annotations.ts";
import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { BareMetalHost } from "../../api/metal3/metal3.ts";
import { INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSIONS } from "../../api/metal3/metal3.ts";
import type { Metal3Remediation } from "../../api/metal3/metal3-remediation.ts";
import {
  METAL3_REMEDIATION_FINALIZER,
  METAL3_REMEDIATION_KIND,
  readMetal3Remediation,
  UNHEALTHY_HOST,
  UNHEALTHY_HOST_VALUE,
} from "../../api/metal3/metal3-remediation.ts";
import type { JsonPatchOperation, WriteOptions } from "../../kube/client.ts";
import { findObject } from "../../kube/objects/find-object.ts";
import type { KubeObject, OwnerReference, ResourceType } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { setField } from "../../kube/objects/set-field.ts";
import { awaitServed } from "../../kube/objects/served-kind.ts";
import { keyOf } from "../../kube/watched.ts";
import { handToOwner } from "../machine-objects/owner-remediated.ts";
import { isFinal } from "../machine/model/decision/state.ts";
import type { MachineRef } from "../../nodes/subject.ts";
import { hostOfMachine } from "../hosts/bare-metal-host/lookup/machine-host.ts";
import { BARE_METAL_HOSTS } from "../hosts/bare-metal-host/store/host-store.ts";
import type { Metal3Mirror, Metal3Step } from "./decide-metal3-remediation.ts";
import { decideMetal3, machineOf } from "./decide-metal3-remediation.ts";
import type { RequestKind } from "./request.ts";
import { childName, createChild, removeChild, runRequests } from "./request.ts";

export const METAL3_REMEDIATIONS = {
  group: INFRASTRUCTURE_GROUP,
  kind: METAL3_REMEDIATION_KIND,
  versions: INFRASTRUCTURE_VERSIONS,
};

/** The annotations of a request that record its node as it was. The BareMetalRemediation gets them too. */
const RECORDS: readonly string[] = [NODE_READY_IN_BOOT, NODE_AT_CREATION];

/** How often the host of a request that is under way is checked: another controller may act on it. */
const HOST_CHECK_MS = 5_000;

/**
 * Serves every Metal3Remediation until `signal` aborts, as a replacement for the Metal3 provider's own controller.
 * Waits for the CRD first. Only one controller may serve them: if both do, ironfence stops and reports it.
 */
export async function serveMetal3Remediations(runtime: KubeRuntime, signal: AbortSignal): Promise<void> {
  const type = await awaitServed(runtime, METAL3_REMEDIATIONS, signal);
  await runRequests(runtime, new Metal3Requests(runtime, type), signal);
}

class Metal3Requests implements RequestKind<Metal3Remediation> {
  readonly family = "metal3-remediation";
  readonly type: ResourceType;
  readonly #runtime: KubeRuntime;

  constructor(runtime: KubeRuntime, type: ResourceType) {
    this.#runtime = runtime;
    this.type = type;
  }

  trim(raw: KubeObject): Metal3Remediation {
    return readMetal3Remediation(raw);
  }

  async reconcile(
    watched: Metal3Remediation,
    child: BareMetalRemediation | undefined,
    signal: AbortSignal,
  ): Promise<{ requeueAfterMs?: number } | void> {
    // Read live, because the watch may still show a deleted request, whose host must not be powered off.
    const raw = await findObject(this.#runtime.client, this.type, keyOf(watched), signal);
    if (raw?.metadata.uid !== watched.metadata.uid) return;
    const request = readMetal3Remediation(raw);
    const machine = machineOf(request);
    const isUnderWay = !isFinal(child?.status?.phase) && request.metadata.deletionTimestamp === undefined;
    const checksHost = machine !== undefined && isUnderWay;
    const host = checksHost ? await hostOfMachine(this.#runtime, machineRef(request, machine), signal) : undefined;
    await this.#run(decideMetal3({ request, child, host }), request, child, signal);
    if (checksHost) return { requeueAfterMs: HOST_CHECK_MS };
  }

  async #run(
    step: Metal3Step,
    request: Metal3Remediation,
    child: BareMetalRemediation | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { annotations, finalizers = [] } = request.metadata;
    switch (step.do) {
      case "wait":
        return;
      case "begin": {
        const marks = { ...annotations, [SERVED_BY]: childName(request) };
        const kept = finalizers.filter((name) => name !== METAL3_REMEDIATION_FINALIZER);
        return this.#patch(
          request,
          [
            { op: "add", path: "/metadata/annotations", value: marks },
            { op: "add", path: "/metadata/finalizers", value: [...kept, METAL3_REMEDIATION_FINALIZER] },
          ],
          signal,
        );
      }
      case "create": {
        const record = Object.fromEntries(Object.entries(annotations ?? {}).filter(([name]) => RECORDS.includes(name)));
        const metadata = { owners: [step.machine], annotations: record };
        return createChild(this.#runtime, this, request, step.spec, metadata, signal);
      }
      case "remove":
        return child === undefined ? undefined : removeChild(this.#runtime, child, signal);
      case "refuse": {
        const value = `${step.reason}: ${step.message}`;
        await this.#patch(
          request,
          [{ op: "add", path: "/metadata/annotations", value: { ...annotations, [REFUSED]: value } }],
          signal,
        );
        return this.#report(request, "Warning", step.reason, step.message);
      }
      case "fail":
        return this.#patchStatus(request, { ...request.rawStatus, phase: "Failed" }, signal);
      case "escalate":
        await this.#escalate(request, step.machine, step.mirror, signal);
        return this.#mirror(request, step.mirror, signal);
      case "mirror":
        return this.#mirror(request, step.mirror, signal);
      case "letGo": {
        const value = finalizers.filter((name) => name !== METAL3_REMEDIATION_FINALIZER);
        return this.#patch(request, [{ op: "add", path: "/metadata/finalizers", value }], signal);
      }
    }
  }

  async #mirror(request: Metal3Remediation, mirror: Metal3Mirror, signal: AbortSignal): Promise<void> {
    const { annotations = {} } = request.metadata;
    const changed = Object.entries(mirror.backups).filter(([key, value]) => annotations[key] !== value);
    // One write at a time. The next reconcile reads the request again and writes the status.
    if (changed.length > 0) {
      const next = Object.fromEntries(
        Object.entries({ ...annotations, ...mirror.backups }).filter(([, value]) => value !== undefined),
      );
      return this.#patch(request, [{ op: "add", path: "/metadata/annotations", value: next }], signal);
    }
    const { phase, retryCount, lastRemediated, message } = mirror;
    await this.#patchStatus(
      request,
      {
        ...request.rawStatus,
        phase,
        // Upstream's schema does not allow 0.
        ...(retryCount > 0 && { retryCount }),
        ...(lastRemediated !== undefined && { lastRemediated }),
      },
      signal,
    );
    if (phase === request.phase) return;
    const isBad = phase === "Failed" || phase === "Deleting machine";
    this.#report(
      request,
      isBad ? "Warning" : "Normal",
      phase === "Deleting machine" ? "DeletingMachine" : phase,
      message,
    );
  }

  /** Makes Cluster API replace the Machine, and the Metal3 provider choose another host for it. */
  async #escalate(
    request: Metal3Remediation,
    machine: OwnerReference,
    mirror: Metal3Mirror,
    signal: AbortSignal,
  ): Promise<void> {
    const ref = machineRef(request, machine);
    await handToOwner(this.#runtime, ref, mirror.message, signal);
    const host = await hostOfMachine(this.#runtime, ref, signal);
    if (host !== undefined) await this.#markUnhealthy(host, signal);
  }

  async #markUnhealthy(host: BareMetalHost, signal: AbortSignal): Promise<void> {
    const { annotations = {}, uid, resourceVersion } = host.metadata;
    const missing = UNHEALTHY_HOST.filter((name) => annotations[name] === undefined);
    if (missing.length === 0) return;
    const marks = Object.fromEntries(missing.map((name) => [name, UNHEALTHY_HOST_VALUE]));
    const operations = setField(host, ["metadata", "annotations"], { ...annotations, ...marks });
    await this.#runtime.client.patch(BARE_METAL_HOSTS, keyOf(host), { uid, resourceVersion }, operations, {}, signal);
  }

  async #patchStatus(request: Metal3Remediation, status: unknown, signal: AbortSignal): Promise<void> {
    return this.#patch(request, [{ op: "add", path: "/status", value: status }], signal, { subresource: "status" });
  }

  async #patch(
    request: Metal3Remediation,
    operations: readonly JsonPatchOperation[],
    signal: AbortSignal,
    options: WriteOptions = {},
  ): Promise<void> {
    const { uid, resourceVersion } = request.metadata;
    await this.#runtime.client.patch(this.type, keyOf(request), { uid, resourceVersion }, operations, options, signal);
  }

  #report(request: Metal3Remediation, type: "Normal" | "Warning", reason: string, note: string): void {
    const { namespace, name, uid } = request.metadata;
    const fields = { metal3Remediation: `${namespace}/${name}`, uid, reason, note };
    if (type === "Warning") this.#runtime.logger.warn(fields, "Metal3Remediation");
    else this.#runtime.logger.info(fields, "Metal3Remediation");
    this.#runtime.events.record({ regarding: request, type, reason, action: "Remediate", note });
  }
}

function machineRef(request: Metal3Remediation, machine: OwnerReference): MachineRef {
  const { apiVersion, kind, name, uid } = machine;
  return { apiVersion, kind, name, uid, namespace: request.metadata.namespace };
}
