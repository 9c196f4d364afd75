import { setTimeout as delay } from "node:timers/promises";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { OUT_OF_SERVICE, sameTaint } from "../../src/api/kubernetes/taints.ts";
import { systemClock } from "../../src/runtime/system.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import type { Rack } from "../rack/rack.ts";
import { NAMESPACE } from "./workload-clusters.ts";

// Follows whole fences from outside: by the objects of the API server and the real power of the hosts.

/** Moments of a fence in their order. */
const MOMENTS = ["unknown", "requested", "orderedOff", "tainted", "orderedOn", "restored"] as const;
type Moment = (typeof MOMENTS)[number];
/** When each moment was, milliseconds since the epoch. */
export type Fence = Readonly<Record<Moment, number>>;

const FENCE_MS_MAX = 120_000;
const POLL_MS = 50;

/** Hangs a host, and follows its fence to the end. @throws Error if the fence has not ended within two minutes. */
export async function followFence(
  { management, workload, rack }: { management: ApiServer; workload: ApiServer; rack: Rack },
  name: string,
): Promise<Fence> {
  const seen = new Map<Moment, number>();
  const note = (moment: Moment): void => void (seen.has(moment) || seen.set(moment, systemClock.nowMs()));
  const unsubscribe = [
    workload.collection<Node>(NODES).subscribe(({ object }) => {
      if (object.metadata.name !== name) return;
      if (readiness(object) === "Unknown") note("unknown");
      if (object.spec.taints?.some((taint) => sameTaint(taint, OUT_OF_SERVICE)) === true) note("tainted");
    }),
    management.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).subscribe(({ type, object }) => {
      if (type === "ADDED" && object.metadata.name === name) note("requested");
    }),
    rack.subscribe((event) => {
      if (event.type === "ordered" && event.host === name && event.outcome === "Started")
        note(event.order === "On" ? "orderedOn" : "orderedOff");
    }),
  ];
  const isOver = (): boolean =>
    seen.has("orderedOn") &&
    readiness(workload.collection<Node>(NODES).get({ name })) === "True" &&
    management.collection(BARE_METAL_REMEDIATIONS).get({ namespace: NAMESPACE, name }) === undefined;
  try {
    const startedMs = systemClock.monotonicMs();
    rack.host(name).hang();
    while (!isOver()) {
      if (systemClock.monotonicMs() - startedMs > FENCE_MS_MAX)
        throw new Error(`the fence of ${name} has not ended: it has seen ${[...seen.keys()].join(", ") || "nothing"}`);
      await delay(POLL_MS);
    }
    note("restored");
  } finally {
    for (const end of unsubscribe) end();
  }
  return Object.fromEntries(MOMENTS.map((moment) => [moment, seen.get(moment) ?? Number.NaN])) as Fence;
}

function readiness(node: Node | undefined): string | undefined {
  return node?.status.conditions?.find(({ type }) => type === "Ready")?.status;
}
