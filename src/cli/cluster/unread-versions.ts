import { NODE_HEALTH_CHECKS } from "../../api/ironfence/node-health-check.ts";
import { OKD_MACHINES } from "../../api/okd/okd-machine.ts";
import type { Family } from "../../config/parsers.ts";
import { CLUSTER_API_CHECKS } from "../../detector/machines/vendors/cluster-api.ts";
import { OKD_CHECKS } from "../../detector/machines/vendors/okd.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KindVersions } from "../../kube/objects/served-kind.ts";
import { findServed } from "../../kube/objects/served-kind.ts";
import { METAL3_REMEDIATIONS } from "../../remediator/requests/metal3-remediation.ts";
import { HOSTS, METAL3_MACHINES } from "../../remediator/hosts/bare-metal-host/store/watch-hosts.ts";
import { sleep } from "../../runtime/clock.ts";

/** The kinds of other projects that each family reads. */
export const KINDS_OF_FAMILIES: Readonly<Record<Family, readonly KindVersions[]>> = {
  "node-health-check": [{ ...NODE_HEALTH_CHECKS, versions: [NODE_HEALTH_CHECKS.version] }],
  "machine-health-check": [
    CLUSTER_API_CHECKS.checks,
    CLUSTER_API_CHECKS.machines,
    ...(CLUSTER_API_CHECKS.clusters === undefined ? [] : [CLUSTER_API_CHECKS.clusters]),
  ],
  "okd-machine-health-check": [OKD_CHECKS.checks, OKD_CHECKS.machines],
  "metal3-remediation": [METAL3_REMEDIATIONS],
  "okd-machine": [OKD_MACHINES],
  "bare-metal-host": [HOSTS, METAL3_MACHINES],
};

/** How often the agent checks again for kinds that are not served, or not in a version that it reads. */
const RETRY_MS = 60_000;

/** How the API server serves one kind that a family reads. */
export interface FamilyKind {
  family: Family;
  kind: KindVersions;
  /** `read`: in a version that ironfence reads. `unread`: in other versions only. `absent`: not at all. */
  state: "read" | "unread" | "absent";
  /** The version that is read, or the one that is served instead; empty if the kind is absent. */
  version: string;
}

/** Finds out how each kind of the families is served. @throws KubeError if the API server cannot be asked. */
export async function readFamilyKinds(
  { client }: Pick<KubeRuntime, "client">,
  families: Iterable<Family>,
  signal: AbortSignal,
): Promise<FamilyKind[]> {
  const found: FamilyKind[] = [];
  for (const family of families) {
    for (const kind of KINDS_OF_FAMILIES[family]) {
      const read = await findServed({ client }, kind, signal);
      const served = read ?? (await client.discover(kind.group, kind.kind, signal));
      const state = read !== undefined ? "read" : served !== undefined ? "unread" : "absent";
      found.push({ family, kind, state, version: served?.version ?? "" });
    }
  }
  return found;
}

/** What is wrong with a kind that is served in other versions only. */
export function unreadVersionText({ family, kind, version }: FamilyKind): string {
  const served = `${kind.kind} is served as ${kind.group}/${version}, and ironfence reads ${kind.versions.join(" and ")}`;
  return `${served}: family ${family} does nothing. Upgrade its provider, or remove the family from --families`;
}

/**
 * Finds the kinds of the families that the API server serves only in versions that ironfence does not read, such as
 * cluster.x-k8s.io/v1alpha4. Each is described in words, with both versions. A kind that is not served at all is left
 * out, because its CRD may be installed later.
 *
 * @throws KubeError if the API server cannot be asked.
 */
export async function findUnreadVersions(
  runtime: Pick<KubeRuntime, "client">,
  families: Iterable<Family>,
  signal: AbortSignal,
): Promise<{ unread: string[]; areAllServed: boolean }> {
  const found = await readFamilyKinds(runtime, families, signal);
  const unread = found.filter(({ state }) => state === "unread").map(unreadVersionText);
  return { unread, areAllServed: found.every(({ state }) => state === "read") };
}

export interface UnreadVersionsDeps {
  runtime: Pick<KubeRuntime, "client" | "clock" | "logger" | "events">;
  families: Iterable<Family>;
  /** The agent's Lease, to which the Kubernetes Events refer. */
  lease: KubeObject;
  /** Called with what `findUnreadVersions` has found, each time. */
  onFound: (unread: readonly string[]) => void;
}

/**
 * Repeats `findUnreadVersions` until every kind is served in a version that ironfence reads. Reports each problem once,
 * by a Kubernetes Event and in the log.
 */
export async function watchUnreadVersions(deps: UnreadVersionsDeps, signal: AbortSignal): Promise<void> {
  const { client, clock, logger, events } = deps.runtime;
  const reported = new Set<string>();
  while (!signal.aborted) {
    try {
      const { unread, areAllServed } = await findUnreadVersions({ client }, deps.families, signal);
      deps.onFound(unread);
      for (const note of unread.filter((text) => !reported.has(text))) {
        reported.add(note);
        logger.warn({ problem: note }, "the API server serves a kind only in a version that ironfence does not read");
        const event = { type: "Warning", reason: "VersionNotRead", action: "Discover", note } as const;
        events.record({ regarding: deps.lease, ...event });
      }
      if (areAllServed) return;
    } catch (error) {
      if (signal.aborted) return;
      logger.debug({ err: error }, "cannot find out which versions of kinds the API server serves");
    }
    await sleep(clock, RETRY_MS, signal).catch(() => undefined);
  }
}
