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
    "kubeconfig-of-any-size",
    "kubeconfig-secret",
    "a kubeconfig from a Secret has a bounded size",
    "if (text.length > TEXT_LENGTH_MAX)",
    "if (text.length > Infinity)",
    "test/unit/clusters/kubeconfig-secret.test.ts",
  ),
  mutant(
    "kubeconfig-of-any-depth",
    "block-yaml",
    "a kubeconfig from a Secret has a bounded depth",
    "if (depth > DEPTH_MAX)",
    "if (depth > Infinity)",
    "test/unit/clusters/block-yaml.test.ts",
  ),
  mutant(
    "kubeconfig-key-of-any-size",
    "kubeconfig-secret",
    "a client key from a Secret costs no more than milliseconds a handshake",
    "keyBits(key) > KEY_BITS_MAX",
    "keyBits(key) > Infinity",
    "test/unit/clusters/kubeconfig-secret.test.ts",
  ),
  mutant(
    "cluster-over-budget-connected",
    "link",
    "a workload cluster that has gone over its budget is away",
    'if (problem !== undefined && nodes.problemCode === "OverBudget") return',
    'if (problem === "" && nodes.problemCode === "OverBudget") return',
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "silent-cluster-connected",
    "link",
    "nothing is decided on the nodes of a workload cluster that has told nothing for minutes",
    " || nowMs - nodes.lastContactMs > CONTACT_AGE_MAX_MS",
    "",
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "suspended-agent-connected",
    "connection",
    "a process that was suspended does not take the nodes of a workload cluster as they were for news",
    "return isSame(this.#state, assessed) ? this.#state : assessed;",
    "return this.#state ?? assessed;",
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "broken-watch-connected",
    "link",
    "nothing is decided on the nodes of a workload cluster whose API server does not answer",
    "nowMs - this.#wellMs >= TROUBLE_MS || ",
    "",
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "unidentified-cluster-connected",
    "link",
    "a cluster of which nobody can tell which it is, is not worked with",
    'if (this.#uid !== undefined) return { state: "connected", uid: this.#uid };',
    'if (this.#openedMs >= 0) return { state: "connected", uid: this.#uid ?? "" };',
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "identified-once",
    "link",
    "another cluster that has come to be at the same address is told from the one before",
    "this.#uid === undefined ? UID_RETRY_MS : UID_READ_MS",
    "this.#uid === undefined ? UID_RETRY_MS : 10 * UID_READ_MS",
    WORKLOAD_CLUSTERS,
  ),
  mutant(
    "same-address-same-cluster",
    "link",
    "another CA at the same address is another cluster: its nodes are not taken for the old one's",
    "credentials.tls.ca === tls.ca &&",
    "",
    WORKLOAD_CLUSTERS,
  ),

  // OKD.
  mutant(
    "own-cluster-stale",
    "own-cluster",
    "nothing follows from nodes of which the API server has not told for minutes",
    "if (silentMs <= NODES_STALE_MS)",
    "if (silentMs < Infinity)",
    "test/unit/clusters/own-cluster.test.ts",
  ),
];
