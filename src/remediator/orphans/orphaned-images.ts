import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { readBareMetalHost } from "../../api/metal3/metal3.ts";
import { Controller } from "../../kube/reconcile/controller.ts";
import { findObject } from "../../kube/objects/find-object.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { keyOf } from "../../kube/watched.ts";
import type { BareMetalHostDirectory } from "../hosts/bare-metal-host/directory.ts";
import { BARE_METAL_HOSTS } from "../hosts/bare-metal-host/store/host-store.ts";
import { storedOwner } from "../hosts/bare-metal-host/store/host-annotations.ts";
import { hostText } from "../hosts/bare-metal-host/store/power-path.ts";
import { putBack, removedImage, savedImage } from "../hosts/bare-metal-host/store/removed-image.ts";

export interface OrphanedImagesDeps {
  runtime: KubeRuntime;
  directory: BareMetalHostDirectory;
  remediations: Watched<BareMetalRemediation>;
}

/** The most characters of an image in an Event. */
const IMAGE_CHARS_MAX = 500;

/**
 * Restores the image of each BareMetalHost whose remediation has removed it and is gone (its finalizer was removed by
 * force), until `signal` aborts. An undo would have done the same. A host that meanwhile has a consumer, an image or
 * another owner is not changed. The Event contains the image.
 */
export async function giveOrphanedImagesBack(
  { runtime, directory, remediations }: OrphanedImagesDeps,
  signal: AbortSignal,
): Promise<void> {
  const reported = new Set<string>();
  const controller: Controller = new Controller(runtime, {
    name: "orphaned-images",
    concurrency: 1,
    reconcile: async (uid, running) => {
      const host = directory.index.byUid(uid);
      const noted = host === undefined ? undefined : removedImage(host);
      if (noted === undefined) reported.delete(uid);
      if (host === undefined || noted === undefined || reported.has(uid)) return;
      if ([...remediations.values()].some(({ metadata }) => metadata.uid === noted.uid)) return;
      // The watches may lag behind a remediation that has just begun.
      const { items } = await runtime.client.list<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, {}, running);
      const present = new Set(items.map(({ metadata }) => metadata.uid));
      const key = { namespace: host.metadata.namespace, name: host.metadata.name };
      const current = await findObject<KubeObject>(runtime.client, BARE_METAL_HOSTS, key, running);
      const removed = current === undefined ? undefined : removedImage(current);
      if (current === undefined || removed === undefined || present.has(removed.uid)) return;
      const obstacle = whyNotGiven(current, present);
      if (obstacle === undefined) {
        const { uid: hostUid, resourceVersion } = current.metadata;
        const guard = { uid: hostUid, resourceVersion };
        const operations = putBack(current, removed.image);
        await runtime.client.patch(BARE_METAL_HOSTS, keyOf(current), guard, operations, {}, running);
      }
      reported.add(uid);
      report(runtime, current, removed, obstacle);
    },
  });
  const unsubscribe = [
    directory.subscribe((uid) => {
      if (uid !== undefined) controller.enqueue(uid);
    }),
    remediations.subscribe(({ type, object }) => {
      const { target } = object.status ?? {};
      if (target !== undefined && type === "deleted") controller.enqueue(target.uid);
    }),
  ];
  for (const { metadata } of directory.index.values()) controller.enqueue(metadata.uid);
  try {
    await controller.run(signal);
  } finally {
    for (const stop of unsubscribe) stop();
  }
}

/** Why the image is not restored; undefined if the host was not changed since the image was removed. */
function whyNotGiven(raw: KubeObject, present: ReadonlySet<string>): string | undefined {
  const host = readBareMetalHost(raw);
  const owner = storedOwner(host);
  if (raw.metadata.deletionTimestamp !== undefined) return "the host is being deleted";
  if (host.consumerRef !== undefined) return `${host.consumerRef.kind} ${host.consumerRef.name} uses the host`;
  if (savedImage(raw) !== undefined) return "the host has been given an image";
  return owner !== undefined && present.has(owner.uid) ? "another remediation has the host" : undefined;
}

function report(
  runtime: KubeRuntime,
  live: KubeObject,
  { uid, image }: { uid: string; image: string },
  obstacle: string | undefined,
): void {
  const host = hostText(readBareMetalHost(live));
  const { namespace, name } = live.metadata;
  const command = `kubectl -n ${namespace} patch baremetalhost ${name} --type merge -p '{"spec":${image}}'`;
  const given =
    obstacle === undefined
      ? "it is restored"
      : `it is not restored, because ${obstacle}; to restore it, run: ${command}`;
  const what = `BareMetalRemediation ${uid} is gone and had removed the image of ${host}`;
  runtime.logger.error({ host, uid, image, obstacle }, "a remediation is gone that had removed the image of a host");
  const note = `${what}: ${given.slice(0, IMAGE_CHARS_MAX)}; the image: ${image.slice(0, IMAGE_CHARS_MAX)}`;
  runtime.events.record({ regarding: live, type: "Warning", reason: "RemediationLost", action: "Tend", note });
}
