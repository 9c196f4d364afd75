import type { Overview } from "../../../src/cli/status/objects/read.ts";

export const AT = "2026-01-01T00:00:00Z";

/** A cluster with only a leading agent. */
export const OVERVIEW: Overview = {
  cluster: { server: "https://api", source: "context prod" },
  namespace: "ironfence-system",
  nowMs: Date.parse(AT),
  agent: {
    state: "leading",
    leader: "agent-1",
    leaseAgeSeconds: 1,
    leadsSince: AT,
    version: "1.0.0",
    components: ["detector", "remediator"],
    families: ["node-health-check"],
    limits: { hosts: 100 },
    standsBy: "",
    notReady: "",
  },
  stopSwitch: { paused: false },
  nodes: [],
  healthChecks: [],
  machineHealthChecks: undefined,
  withoutCluster: [],
  machines: undefined,
  bareMetalHosts: undefined,
  requests: { metal3Remediations: undefined, okdMachines: undefined },
  remediations: [],
  targets: [],
  strayTargets: [],
};
