import { globSync } from "node:fs";

/** Test files that judge the generated mutants of a folder of `src`. */
interface Area {
  /** All that reach the mutant are run first. */
  fast: readonly string[];
  /** Those that reach it are run for a mutant that has lived so far. */
  slow: readonly string[];
}

/** For each folder of `src`; one that is not named has its unit tests alone. */
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

/** The test files for a file of `src`: fast ones, and slow ones. */
export function testsFor(file: string, root: string): { fast: readonly string[]; slow: readonly string[] } {
  const folder = file.split("/")[1] ?? "";
  const { fast, slow } = AREAS[folder] ?? { fast: [`test/unit/${folder}/**/*.test.ts`], slow: [] };
  return { fast: globSync(fast, { cwd: root }).toSorted(), slow: globSync(slow, { cwd: root }).toSorted() };
}

/** Whether nothing in it waits for anything: it decides by what it is given, and the fast tests can say all of it. */
export function isPure(source: string): boolean {
  return !/\b(?:async|await|Promise)\b/.test(source);
}
