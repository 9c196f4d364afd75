import type { Enrolment, FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { readLiveTarget, updateTargetStatus } from "../../remediator/hosts/fencing-target/target-store.ts";
import { failEnrolment } from "./fail-enrolment.ts";

/** The target of an enrolment. It has to stay as it was when the user agreed: in maintenance, and without an owner. */
export class HeldTarget {
  readonly #runtime: KubeRuntime;
  readonly #agreed: FencingTarget;

  constructor(runtime: KubeRuntime, agreed: FencingTarget) {
    this.#runtime = runtime;
    this.#agreed = agreed;
  }

  /** Ensures that the agent still sends no order to the host. Reads the target live, because the steps take minutes. */
  async ensureHeld(signal: AbortSignal): Promise<void> {
    this.#ensureSame(await readLiveTarget(this.#runtime, this.#ref(), signal));
  }

  /** Writes into the status, if the target is as it was when the user agreed. */
  async write(change: { enrolment: Enrolment | null }, signal: AbortSignal): Promise<void> {
    await updateTargetStatus(
      this.#runtime,
      this.#ref(),
      (live) => {
        this.#ensureSame(live);
        return change;
      },
      signal,
    );
  }

  #ensureSame({ metadata, spec, status }: FencingTarget): void {
    if (metadata.generation !== this.#agreed.metadata.generation || !spec.maintenance) {
      failEnrolment("the target was edited during the procedure");
    }
    if (status?.owner !== undefined) failEnrolment("a remediation took the host during the procedure");
  }

  #ref(): { kind: string; namespace: string; name: string; uid: string } {
    const { kind, metadata } = this.#agreed;
    return { kind, namespace: metadata.namespace ?? "", name: metadata.name, uid: metadata.uid };
  }
}
