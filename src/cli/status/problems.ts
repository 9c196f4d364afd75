import { groupsOf, judgeNodes, uncoveredOf } from "./could-fence/could-fence.ts";
import type { CouldFence, FenceReadiness } from "./could-fence/could-fence.ts";
import type { Step } from "./could-fence/precondition.ts";
import type { Problem } from "./objects/object-problems.ts";
import { objectProblems, shorten } from "./objects/object-problems.ts";
import type { Overview } from "./objects/read.ts";

/** All problems, the errors first: problems of objects, and nodes that could not be fenced for another reason. Pure. */
export function problemsOf(overview: Overview, could: CouldFence = judgeNodes(overview)): Problem[] {
  const objects = objectProblems(overview);
  const shown = new Set(objects.map(({ kind, reason }) => `${kind} ${reason}`));
  // A node that no health check covers is probably not meant to be fenced.
  const idle = new Set(uncoveredOf(overview).withoutCheck);
  const meant = could.nodes.filter(({ node, isIntended }) => !isIntended || !idle.has(node));
  const found = [...objects, ...coverageProblems(overview), ...nodeProblems(meant, shown)];
  return [
    ...found.filter(({ severity }) => severity === "error"),
    ...found.filter(({ severity }) => severity !== "error"),
  ];
}

const NO_TARGET = "NoTarget";

/**
 * Nodes without a host, whatever else keeps them from being fenced. One that no health check covers is probably not
 * meant to be fenced.
 */
function coverageProblems(overview: Overview): Problem[] {
  const { withoutTarget, withoutCheck } = uncoveredOf(overview);
  const exposed = withoutTarget.filter((name) => !withoutCheck.includes(name));
  if (exposed.length === 0) return [];
  const message = `${shorten(exposed)}: could not be fenced now: a health check covers nodes without a FencingTarget, and without a BareMetalHost that the leader uses: create a FencingTarget for each`;
  return [{ severity: "error", kind: "Node", reason: NO_TARGET, message }];
}

/** The kinds of the objects that a step judges. */
const KINDS_OF: Readonly<Partial<Record<Step, readonly string[]>>> = {
  agent: ["Agent", "Cluster"],
  "health check": ["NodeHealthCheck"],
  remediation: ["BareMetalRemediation"],
  target: ["FencingTarget"],
  maintenance: ["FencingTarget"],
  pause: ["StopSwitch"],
};

/** @param shown kinds and reasons of objects that are problems themselves: their nodes are not listed again. */
function nodeProblems(nodes: readonly FenceReadiness[], shown: ReadonlySet<string>): Problem[] {
  return groupsOf(nodes).flatMap(({ answer, reason, message, step, isIntended, nodes: names }): Problem[] => {
    const kinds = (step && KINDS_OF[step]) ?? [];
    if (kinds.some((kind) => shown.has(`${kind} ${reason}`))) return [];
    if (reason === NO_TARGET) return [];
    const could = answer === "no" ? "could not be fenced now" : "nothing shows whether it could be fenced now";
    const text = `${shorten(names)}: ${could}: ${message}`;
    return [{ severity: isIntended ? "warning" : "error", kind: "Node", reason, message: text }];
  });
}
