/** One long check: a script of package.json with its arguments. */
export interface Tier {
  name: string;
  /** What this check shows in addition to `.ci/run`. */
  shows: string;
  /** Arguments of `npm run`. */
  run: readonly string[];
  /** It counts as failed after this time. */
  timeoutMinutes: number;
}

const POWER_LOSS = ["test/nightly/power-loss.test.ts", "test/nightly/power-loss-unproven.test.ts"] as const;

/** The order of the run: checks of safety come first, and benchmarks last. */
export const TIERS: readonly Tier[] = [
  {
    name: "sim",
    shows: "two hours of simulated fences with new seeds",
    run: ["sim", "--", "--budget", "120m"],
    timeoutMinutes: 130,
  },
  {
    name: "rack",
    shows:
      "in a simulation of 5,000 hosts, a rack of 40 that loses its power is released early, and hosts that stay on are not",
    run: ["test:file", "--", "test/nightly/early-rack.test.ts"],
    timeoutMinutes: 20,
  },
  {
    name: "mutants",
    shows: "every named mutant is killed by its tests",
    run: ["mutants"],
    timeoutMinutes: 360,
  },
  {
    name: "e2e",
    shows: "the end-to-end tests on a real control plane with real BMC emulators",
    run: ["test:e2e"],
    timeoutMinutes: 60,
  },
  ...["1.30", "1.33"].map((version) => ({
    name: `kubernetes-${version}`,
    shows: `the end-to-end tests that need only a control plane, on Kubernetes ${version}`,
    run: ["test:e2e", "--", "--kubernetes", version],
    timeoutMinutes: 90,
  })),
  {
    name: "plugins",
    shows: "the kubectl plugin in the real kubectl, the spec for troubleshoot and the bundle of OLM by their own code",
    run: [
      "test:e2e",
      "--",
      "test/nightly/peers/kubectl.test.ts",
      "test/nightly/peers/troubleshoot.test.ts",
      "test/nightly/peers/olm.test.ts",
    ],
    timeoutMinutes: 30,
  },
  {
    name: "night-shift",
    shows:
      "alerts, page, status and check for the faults of a night on call that take minutes to show, an alert with its real waiting time, and the commands of all runbooks",
    run: [
      "test:e2e",
      "--",
      "test/nightly/night-shift-agents.test.ts",
      "test/nightly/night-shift-policies.test.ts",
      "test/nightly/night-shift-real-wait.test.ts",
      "test/nightly/night-shift-runbooks.test.ts",
    ],
    timeoutMinutes: 30,
  },
  {
    name: "power-loss",
    shows: "when the pods of hosts without power are released under the flags of Kubernetes, and when they are not",
    run: ["test:e2e", "--", ...POWER_LOSS],
    timeoutMinutes: 30,
  },
  {
    name: "power-loss-1.30",
    shows: "the same on Kubernetes 1.30",
    run: ["test:e2e", "--", ...POWER_LOSS, "--kubernetes", "1.30"],
    timeoutMinutes: 30,
  },
  {
    name: "upgrade-kills",
    shows: "fences that 0.1.0 and this version take over from each other, killed at random moments",
    run: ["test:e2e", "--", "test/nightly/upgrade-kills.test.ts"],
    timeoutMinutes: 30,
  },
  {
    name: "removal",
    shows: "what is deleted in the middle of a fence in spite of the policies, and how a host comes back from that",
    run: ["test:e2e", "--", "test/nightly/removal.test.ts", "test/nightly/chart-removal.test.ts"],
    timeoutMinutes: 30,
  },
  {
    name: "reproducible",
    shows: "a release that is made twice has the same files: chart, manifests, images, executables and plugin",
    run: ["test:e2e", "--", "test/nightly/reproducible.test.ts"],
    timeoutMinutes: 20,
  },
  {
    name: "headlamp",
    shows: "the Headlamp plugin is typed, linted, rendered with the objects of the demo, and built",
    run: ["headlamp"],
    timeoutMinutes: 30,
  },
  {
    name: "fuzz",
    shows: "ten minutes of hostile input for every parser",
    run: ["bench", "--", "fuzz", "--minutes", "10"],
    timeoutMinutes: 300,
  },
  ...["agent", "detector", "clusters", "hostile", "order", "bmc", "fence"].map((name) => ({
    name: `bench-${name}`,
    shows: `the figures of npm run bench -- ${name}`,
    run: ["bench", "--", name],
    timeoutMinutes: 30,
  })),
  {
    name: "bench-all",
    shows: "every figure that has an aim in one table, and that counts, memory and ratios keep theirs",
    run: ["bench", "--", "all"],
    timeoutMinutes: 150,
  },
];
