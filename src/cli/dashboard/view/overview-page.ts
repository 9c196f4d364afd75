import { parseTimeMs } from "../../../runtime/time.ts";
import { problemsOf } from "../../status/problems.ts";
import type { Problem } from "../../status/objects/object-problems.ts";
import type { Overview } from "../../status/objects/read.ts";
import type { FenceReadiness, ReadinessGroup } from "../../status/could-fence/could-fence.ts";
import { groupsOf, judgeNodes } from "../../status/could-fence/could-fence.ts";
import type { Fence, Held } from "./fences.ts";
import type { Ended } from "./ended-fences.ts";
import { fencesOf, heldOf, slotsInUse } from "./fences.ts";
import { endedOf } from "./ended-fences.ts";

/** Everything that the first page shows, in its order. */
export interface OverviewPage {
  cluster: string;
  namespace: string;
  nowMs: number;
  leader: { state: "leading" | "silent" | "none" | "unknown"; text: string };
  underWay: {
    hosts: number;
    hostsMax: number | undefined;
    zones: { zone: string; hosts: number; hostsMax: number | undefined }[];
  };
  /** Undefined if ironfence is not paused. */
  paused: { text: string; sinceMs: number | undefined; isKnown: boolean } | undefined;
  could: {
    yes: number;
    /** How many of these can be fenced only by hand, because no health check covers them. */
    byHand: number;
    no: number;
    unknown: number;
    /** The nodes that are not answered with yes, by reason, the most frequent reason first. */
    groups: ReadinessGroup[];
    unread: string | undefined;
  };
  now: Fence[];
  held: Held[];
  ended: Ended[];
  /** Lists that the caller is not allowed to read. Their objects are missing above. */
  gaps: string[];
  problems: Problem[];
}

/** The same data as `ironfence status -o json`, in the order in which an engineer on call needs it. Pure. */
export function overviewPage(overview: Overview): { page: OverviewPage; nodes: FenceReadiness[] } {
  const readiness = judgeNodes(overview);
  const { nodes, unread } = readiness;
  const problems = problemsOf(overview, readiness);
  const count = (answer: FenceReadiness["answer"]): number => nodes.filter((node) => node.answer === answer).length;
  const { hosts, zones } = slotsInUse(overview);
  const limits = "limits" in overview.agent ? overview.agent.limits : undefined;
  const page: OverviewPage = {
    cluster: `${overview.cluster.server} (${overview.cluster.source})`,
    namespace: overview.namespace,
    nowMs: overview.nowMs,
    leader: leaderOf(overview),
    underWay: {
      hosts,
      hostsMax: limits?.hosts,
      zones: zones.map((zone) => ({ ...zone, hostsMax: limits?.perZone })),
    },
    paused: pauseOf(overview),
    could: {
      yes: count("yes"),
      byHand: nodes.filter(({ answer, reason }) => answer === "yes" && reason !== "").length,
      no: count("no"),
      unknown: count("unknown"),
      groups: groupsOf(nodes),
      unread,
    },
    now: fencesOf(overview),
    held: heldOf(overview),
    ended: endedOf(overview),
    gaps: problems.flatMap(({ kind, reason, message }) =>
      kind === "Status" && reason === "Forbidden" ? [message] : [],
    ),
    problems: problems.filter(({ kind }) => kind !== "Status"),
  };
  return { page, nodes };
}

function leaderOf({ agent }: Overview): OverviewPage["leader"] {
  if ("message" in agent) return { state: agent.state === "none" ? "none" : "unknown", text: agent.message };
  const { state, leader, leaseAgeSeconds, version, standsBy, notReady } = agent;
  const flaw = standsBy || notReady;
  if (state === "silent") return { state, text: `${leader} has not renewed its lease for ${leaseAgeSeconds} s` };
  if (flaw !== "") return { state: "silent", text: `${leader}: ${flaw}` };
  return { state, text: `${leader}${version === undefined ? "" : `, version ${version}`}` };
}

function pauseOf({ stopSwitch }: Overview): OverviewPage["paused"] {
  if ("problem" in stopSwitch) return { text: stopSwitch.problem, sinceMs: undefined, isKnown: false };
  if (!stopSwitch.paused) return undefined;
  return { text: stopSwitch.reason ?? "paused", sinceMs: parseTimeMs(stopSwitch.since), isKnown: true };
}
