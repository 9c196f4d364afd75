import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { isFinal } from "../../machine/model/decision/state.ts";

/**
 * Decides which remediation may replace its Machine: one at a time in each namespace. All Machines of a cluster are in
 * one namespace. Replacements that have begun are read from the stored states, so a restart exceeds no limit. Only this
 * process knows which remediation was admitted and has not begun yet.
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
