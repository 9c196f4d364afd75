import type { Node } from "../../../api/core.ts";
import type { FencingTarget } from "../../../api/fencing-target.ts";
import type { BmcAddress } from "../../../bmc/address.ts";
import { parseBmcAddress } from "../../../bmc/address.ts";
import { checkTls } from "../../../bmc/network-checks.ts";
import { openDevice } from "../../../bmc/open-device.ts";
import { endpointOf } from "../../../bmc/probe-device.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { createFencingTargetDirectory } from "../../../remediator/hosts/fencing-target.ts";
import type { FencingTargetDirectory } from "../../../remediator/hosts/fencing-target.ts";
import { probeTarget } from "../../../remediator/probes/probe.ts";
import { statusChange } from "../../../remediator/probes/target-status.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { inParallel } from "../../../runtime/in-parallel.ts";
import { toTime } from "../../../runtime/time.ts";
import { listedView } from "../../listed.ts";
import { itemsOf } from "../../status-problems.ts";
import type { CertificateFact } from "../facts.ts";
import type { ProbeLive } from "./read-facts.ts";
import { readyOf } from "../../../remediator/hosts/target-store.ts";
import type { RefusedLogin } from "../../../remediator/probes/probe-result.ts";

/** Each probe of a device has a deadline of its own. */
const TARGETS_AT_ONCE_MAX = 32;
const TLS_TIMEOUT_MS = 10_000;
/** What only the agent can see: that the operator of a BareMetalHost powers the host as well. */
const NOT_SEEN_FROM_HERE: ReadonlySet<string> = new Set(["Ambiguous", "BareMetalHostsUnreadable"]);

/**
 * Probes every target by the code of the agent, with one login for each device. A target that is in maintenance or that a
 * remediation owns keeps its status. A login that was refused is not tried again by the same command, so that waiting
 * (`--wait`) locks no account.
 */
export function createLiveProbes(runtime: KubeRuntime, namespace: string): ProbeLive {
  const refused: RefusedLogin[] = [];
  return async (overview, signal) => {
    const targets = itemsOf(overview.targets);
    const nodes = new Map(itemsOf(overview.nodes).map((node) => [node.metadata.name, node]));
    const living = new Set(itemsOf(overview.remediations).map(({ metadata }) => metadata.uid));
    const directory = createFencingTargetDirectory(
      { runtime, targets: listedView(targets), namespace, openDevice },
      signal,
    );
    const probed = await inParallel(targets, TARGETS_AT_ONCE_MAX, async (target) => {
      const owner = target.status?.owner;
      if (target.spec.maintenance || (owner !== undefined && living.has(owner.uid))) return target;
      const node = target.spec.clusterRef === undefined ? nodes.get(target.spec.nodeName) : undefined;
      const isKnown = Array.isArray(overview.nodes);
      return probeOne({ runtime, directory, refused, isKnown }, target, node, signal);
    });
    return { targets: probed, certificates: await readCertificates(runtime, targets, signal) };
  };
}

interface ProbeDeps {
  runtime: KubeRuntime;
  directory: FencingTargetDirectory;
  refused: RefusedLogin[];
  /** Whether the nodes of the cluster could be listed. */
  isKnown: boolean;
}

/** The target with the conditions that the agent would write after this probe. */
async function probeOne(
  { runtime, directory, refused, isKnown }: ProbeDeps,
  target: FencingTarget,
  node: Node | undefined,
  signal: AbortSignal,
): Promise<FencingTarget> {
  if (NOT_SEEN_FROM_HERE.has(readyOf(target.status)?.reason ?? "")) return target;
  const deps = { runtime, openDevice };
  const result = await probeTarget(deps, target, node, { nodeRuntime: runtime, refused, toProve: false }, signal);
  refused.push(...result.refused);
  const { nodeName, clusterRef } = target.spec;
  const isMissing = isKnown && clusterRef === undefined && node === undefined;
  const change = statusChange(
    {
      target,
      conflict: directory.conflictOf(target.metadata.uid),
      nodeMissing: isMissing
        ? `the cluster has no node ${nodeName}: correct spec.nodeName, or wait until the node joins`
        : undefined,
      nodeSystemUUID: node?.status.nodeInfo?.systemUUID,
      probe: { result, atMs: runtime.clock.nowMs() },
      outage: undefined,
    },
    "asBefore",
    runtime.clock.nowMs(),
  );
  const conditions = change?.conditions ?? target.status?.conditions ?? [];
  return { ...target, status: { ...target.status, conditions, lastProbeTime: toTime(runtime.clock.nowMs()) } };
}

/** Asks each Redfish service for its certificate; no request follows the handshake, so no password is sent. */
function readCertificates(
  runtime: KubeRuntime,
  targets: readonly FencingTarget[],
  signal: AbortSignal,
): Promise<CertificateFact[]> {
  const services = targets.flatMap((target) =>
    target.spec.devices.flatMap(({ address, tls }) => {
      const parsed = parsedOf(address);
      if (parsed?.protocol !== "redfish" || !parsed.origin.startsWith("https:")) return [];
      return [{ target, parsed, minVersion: tls?.minVersion }];
    }),
  );
  // Several Systems of one BMC share its certificate.
  const distinct = [...new Map(services.map((service) => [service.parsed.origin, service])).values()];
  return inParallel(distinct, TARGETS_AT_ONCE_MAX, async ({ target, parsed, minVersion }) => {
    const tls = { insecureSkipVerify: true, ...(minVersion !== undefined && { minVersion }) };
    const validUntilMs = await withDeadline(runtime.clock, "TLS handshake", TLS_TIMEOUT_MS, signal, async (within) => {
      return (await checkTls(endpointOf(parsed), tls, within)).validUntilMs;
    }).catch(() => {
      // The probe has its own words for a BMC that does not answer.
      signal.throwIfAborted();
      return undefined;
    });
    return { target, address: parsed.origin, validUntilMs };
  });
}

/** Undefined for an address that cannot be read: the probe reports it. */
function parsedOf(address: string): BmcAddress | undefined {
  try {
    return parseBmcAddress(address);
  } catch {
    return undefined;
  }
}
