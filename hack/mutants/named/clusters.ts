import { WORKLOAD_CLUSTERS } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/clusters");

export const CLUSTERS_MUTANTS: readonly Mutant[] = [
  // Workload clusters.
  mutant(
    "workload-writes-unguarded",
    "link",
    "nothing is written to a workload cluster without the lease",
    "guardWrites(wire, deps.mayWrite)",
    "guardWrites(wire, () => true)",
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "kubeconfig-runs-programs",
    "kubeconfig-secret",
    "a kubeconfig from a Secret that names a program or a file is not used",
    'refuse("user", user);',
    'refuse("user", {});',
    "test/unit/clusters/kubeconfig-secret.test.ts",
  ),
  mutant(
    "suspended-agent-connected",
    "connection",
    "a process that was suspended does not treat the old nodes of a workload cluster as current",
    "return isSame(this.#state, assessed) ? this.#state : assessed;",
    "return this.#state ?? assessed;",
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "unidentified-cluster-connected",
    "link",
    "the agent does not work with a cluster that it cannot identify",
    'if (this.#uid !== undefined) return { state: "connected", uid: this.#uid };',
    'if (this.#openedMs >= 0) return { state: "connected", uid: this.#uid ?? "" };',
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "uid-of-any-length",
    "cluster-uid",
    "a UID of a workload cluster that is too long for a status is not accepted",
    "uid.length <= UID_LENGTH_MAX",
    "uid.length <= Infinity",
    "test/unit/clusters/cluster-uid.test.ts",
  ),
  mutant(
    "identified-once",
    "link",
    "another cluster at the same address is distinguished from the earlier one",
    "this.#uid === undefined ? UID_RETRY_MS : UID_READ_MS",
    "this.#uid === undefined ? UID_RETRY_MS : 10 * UID_READ_MS",
    WORKLOAD_CLUSTERS,
  ),
];
