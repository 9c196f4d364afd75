import { globSync } from "node:fs";

/** The test files for generated mutants of one folder of `src`. */
interface Area {
  /** Those that reach the mutant are run first. */
  fast: readonly string[];
  /** Those that reach the mutant are run if no fast test has killed it. */
  slow: readonly string[];
}

/** The areas by folder of `src`. A folder that is not listed uses only its unit tests. */
const AREAS: Readonly<Record<string, Area>> = {
  bmc: {
    fast: ["test/unit/bmc/**/*.test.ts", "test/unit/remediator/hosts/fencing-target/fencing-target.test.ts"],
    slow: ["test/integration/{bmc,ipmi}-*.test.ts"],
  },
  clusters: {
    fast: ["test/unit/clusters/**/*.test.ts"],
    slow: ["test/sim/workload/*.test.ts"],
  },
  detector: {
    fast: ["test/unit/detector/**/*.test.ts"],
    slow: [
      "test/integration/detector-*.test.ts",
      "test/integration/machine-health-check.test.ts",
      "test/sim/{retry-waits,okd,okd-health-check}.test.ts",
      "test/sim/early-{release,interference,poweroff}.test.ts",
    ],
  },
  nodes: {
    fast: [
      "test/unit/nodes/**/*.test.ts",
      "test/unit/remediator/{clusters/clusters,machine/model/state,machine-objects/resolve-subject}.test.ts",
    ],
    slow: [],
  },
  remediator: {
    fast: ["test/unit/remediator/**/*.test.ts"],
    slow: [
      "test/sim/{reboot,safety,orders,abort,reprovision,edits,admissions,interference,refused-writes}.test.ts",
      "test/sim/{held-orders,several-devices,renewals,unvouched,came-back,stale,orphans}.test.ts",
      "test/sim/early-*.test.ts",
      "test/sim/metal3/{reboot,reprovision,operator}.test.ts",
      "test/sim/workload/workload.test.ts",
    ],
  },
};

/** The fast and the slow test files for a file of `src`. */
export function testsFor(file: string, root: string): { fast: readonly string[]; slow: readonly string[] } {
  const folder = file.split("/")[1] ?? "";
  const { fast, slow } = AREAS[folder] ?? { fast: [`test/unit/${folder}/**/*.test.ts`], slow: [] };
  return { fast: globSync(fast, { cwd: root }).toSorted(), slow: globSync(slow, { cwd: root }).toSorted() };
}

/** Whether the code is synchronous. It then depends only on its arguments, and the fast tests are enough. */
export function isPure(source: string): boolean {
  return !/\b(?:async|await|Promise)\b/.test(source);
}
