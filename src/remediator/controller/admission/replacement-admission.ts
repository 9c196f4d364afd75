import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { isFinal } from "../../machine/model/decision/state.ts";

/**
 * Which remediation may have its Machine replaced: one at a time among the Machines of a namespace, which are those of
 * a cluster at most. Who has begun is read from what is stored, so a restart exceeds no limit; kept here is only which
 * one was admitted.
 */
export class ReplacementAdmission {
  readonly #remediations: () => Iterable<BareMetalRemediation>;
  readonly #admitted = new Map<string, string>();

  constructor(remediations: () => Iterable<BareMetalRemediation>) {
    this.#remediations = remediations;
  }

  ask({ metadata, status }: BareMetalRemediation): { granted: true } | { granted: false; by: string } {
    const namespace = status?.machine?.namespace ?? "";
    for (const other of this.#remediations()) {
      const { uid, name } = other.metadata;
      if (uid === metadata.uid || other.status?.machine?.namespace !== namespace) continue;
      const { phase } = other.status;
      if (isFinal(phase) || phase === "Undoing") continue;
      if (hasBegun(other) || this.#admitted.get(namespace) === uid) {
        return { granted: false, by: `${other.metadata.namespace ?? ""}/${name}` };
      }
    }
    this.#admitted.set(namespace, metadata.uid);
    return { granted: true };
  }
}

function hasBegun({ spec, status }: BareMetalRemediation): boolean {
  if (spec.strategy.via !== "MachineDeletion" || status?.attempt?.kind !== "Reprovision") return false;
  return status.phase !== "Resolving" && status.phase !== "Verifying";
}
