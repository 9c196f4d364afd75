import { SKIP_DURATION_IF_OFF } from "../../../../src/api/names/annotations.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { EarlyOffProof } from "../../../../src/api/ironfence/fencing-target.ts";
import type { EarlyFacts } from "../../../../src/detector/shared/model/early-facts.ts";
import type { ObservedHost, ObservedTarget } from "../../../../src/detector/shared/model/observed-host.ts";
import type { Template } from "../../../../src/detector/shared/model/template.ts";
import { toMicroTime } from "../../../../src/runtime/time.ts";
import { nodeOf, policyOf, T0, targetOf, templatesOf } from "./builders.ts";

// A node that is still Ready although its host is proven off.

export const RULES = [
  { type: "Ready", status: "False", duration: "300s" },
  { type: "Ready", status: "Unknown", duration: "300s" },
];
export const policyWith = (rules: typeof RULES, more: Parameters<typeof policyOf>[0] = {}, value?: string) =>
  policyOf({ unhealthyConditions: rules, ...more }, value === undefined ? {} : { [SKIP_DURATION_IF_OFF]: value });
export const policy = policyWith(RULES);

export const ready = (more: Partial<Node> = {}, labels = {}): Node => {
  const node = nodeOf("a", "True", T0 - 3_600_000, labels);
  return { ...node, status: { ...node.status, nodeInfo: { bootID: "boot" } }, ...more };
};
export const PROOF: EarlyOffProof = {
  time: toMicroTime(T0 - 1_000),
  nodeUID: "uid-a",
  bootID: "boot",
  leaseUID: "lease",
  leaseResourceVersion: "7",
};
export const EARLY: EarlyFacts = {
  lease: { uid: "lease", resourceVersion: "7", durationMs: 40_000, gapsMs: [10_000, 10_000], sinceMs: 100_000 },
  monotonicMs: 116_000,
  serverNowMs: T0,
  otherControlPlaneOverdue: false,
};
export const hostWith = (
  target: Partial<ObservedTarget> = {},
  more: Partial<ObservedHost> = {},
  arrivedAgoMs = 500,
): ObservedHost => ({
  problem: undefined,
  stopped: undefined,
  targets: [
    {
      target: targetOf(ready(), { offProof: undefined, earlyOffProof: PROOF, ...target }),
      proofArrivedAgoMs: undefined,
      earlyProofArrivedAgoMs: arrivedAgoMs,
    },
  ],
  ...more,
});

/** The templates of BareMetalRemediations. */
export function ours(strategy: Record<string, unknown> = {}): Template[] {
  const templates = templatesOf(policy);
  const type = {
    group: "ironfence.io",
    version: "v1alpha1",
    kind: "BareMetalRemediation",
    plural: "baremetalremediations",
    namespaced: true,
  };
  for (const template of templates) Object.assign(template, { type, remediationSpec: { strategy } });
  return templates;
}
