import { isOutOfService, CLAIMS } from "../../hack/kube-mock/controllers/cluster-types.ts";
import type { ClusterNode, PersistentVolumeClaim } from "../../hack/kube-mock/controllers/cluster-types.ts";
import type { Host } from "../../hack/rack/host.ts";
import { NODES, VOLUME_ATTACHMENTS } from "../../src/api/kubernetes/core-types.ts";
import type { VolumeAttachment } from "../../src/api/kubernetes/core.ts";
import type { Cluster } from "./cluster.ts";

/** After this time, a host that is on the blocklist by its address removes itself. */
const COOL_DOWN_MS = 300_000;

/**
 * A CSI driver that fences like ceph-csi. A client is a mapping on one host in one boot. The metadata of a volume names
 * its client. ControllerUnpublish puts this client on the blocklist of the storage if the node has the out-of-service
 * taint at that time, and does nothing else. The storage has no other protection: a volume with two clients that can
 * write is lost.
 *
 * `client`: the blocklist contains only that client. `address`: it contains the whole host. The node plugin of the host
 * removes the entry when it runs and some minutes have passed.
 */
export class CsiDriver {
  readonly #by: "client" | "address";
  /** Whether ControllerUnpublish fails. */
  isAway = false;
  readonly losses: string[] = [];
  /** Each successful ControllerUnpublish: its node, and whether that had the taint. */
  readonly unpublished: { node: string; sawTaint: boolean; blocked: string | undefined }[] = [];
  /** The time since which each client or host is on the blocklist. */
  readonly #blocklist = new Map<string, number>();
  /** The client that has staged each claim last. */
  readonly #staged = new Map<string, string>();
  #cluster: Cluster | undefined;

  constructor(by: "client" | "address") {
    this.#by = by;
  }

  /** For the simulated controllers of the cluster. */
  readonly unpublish = ({ spec }: VolumeAttachment): boolean => {
    if (this.isAway || this.#cluster === undefined) return false;
    const { server } = this.#cluster;
    const node = server.collection<ClusterNode>(NODES).get({ name: spec.nodeName });
    const sawTaint = node !== undefined && isOutOfService(node);
    const volume = spec.source.persistentVolumeName;
    const claims = [...server.collection<PersistentVolumeClaim>(CLAIMS).values()];
    const claim = claims.find((known) => known.spec.volumeName === volume)?.metadata;
    const client = this.#staged.get(`${claim?.namespace}/${claim?.name}`);
    const blocked = sawTaint && client?.startsWith(`${spec.nodeName}/`) === true ? client : undefined;
    const entry = this.#by === "client" ? blocked : spec.nodeName;
    if (blocked !== undefined && entry !== undefined) this.#blocklist.set(entry, this.#cluster.clock.monotonicMs());
    this.unpublished.push({ node: spec.nodeName, sawTaint, blocked });
    return true;
  };

  /** For kubelets, which wait until the volumes of a pod are attached before they start it. */
  readonly areAttached = (host: string, claims: readonly string[]): boolean => {
    const attachments = [...(this.#cluster?.server.collection<VolumeAttachment>(VOLUME_ATTACHMENTS).values() ?? [])];
    return claims.every((key) => {
      const [namespace = "", name = ""] = key.split("/");
      const volume = this.#cluster?.server.collection<PersistentVolumeClaim>(CLAIMS).get({ namespace, name })
        ?.spec.volumeName;
      return attachments.some(
        ({ metadata, spec, status }) =>
          spec.nodeName === host &&
          spec.source.persistentVolumeName === volume &&
          status?.attached === true &&
          metadata.deletionTimestamp === undefined,
      );
    });
  };

  /** Checks from now on which clients can write. */
  watch(cluster: Cluster): void {
    this.#cluster = cluster;
    const look = (): void => this.#observe(cluster.rack.hosts, cluster.clock.monotonicMs());
    cluster.server.onChange(look);
    cluster.rack.subscribe(look);
  }

  #observe(hosts: readonly Host[], nowMs: number): void {
    const writers = new Map<string, string>();
    for (const host of hosts) {
      const blockedSinceMs = this.#blocklist.get(host.name) ?? Infinity;
      if (host.os === "running" && nowMs - blockedSinceMs >= COOL_DOWN_MS) this.#blocklist.delete(host.name);
      if (!host.canWrite) continue;
      const client = `${host.name}/${host.bootID}`;
      for (const claim of [...host.workloads.values()].flatMap(({ claims }) => claims)) {
        if (host.os === "running") this.#staged.set(claim, client);
        if (this.#blocklist.has(client) || this.#blocklist.has(host.name)) continue;
        const other = writers.get(claim);
        if (other !== undefined && other !== client) this.losses.push(`${claim}: ${other} and ${client}`);
        writers.set(claim, client);
      }
    }
  }
}
