import type { KubeObject } from "../../../kube/resource.ts";
import { nameOf } from "../../../kube/watched.ts";
import type { DecisionRecorder } from "../../../telemetry/decisions/recorder.ts";
import type { Decider } from "../model/decider.ts";

/** Decides about the health checks of one family, and records each decision if there is a log. */
export class CheckDecisions {
  readonly #recorder: DecisionRecorder | undefined;
  /** The UIDs of the health checks that have a session in the log, by `namespace/name`. */
  readonly #begun = new Map<string, string>();

  constructor(recorder: DecisionRecorder | undefined) {
    this.#recorder = recorder;
  }

  decide<I extends object, D>(check: KubeObject, decider: Decider<I, D>, input: I, nowMs: number): D {
    const decision = decider.decide(input, nowMs);
    if (this.#recorder !== undefined) {
      this.#begin(this.#recorder, check);
      const { name, fieldsOf, recorded } = decider;
      this.#recorder.decision(check.metadata.uid, name, fieldsOf(input), nowMs, recorded(decision));
    }
    return decision;
  }

  /** Is called when a health check was deleted. */
  forget(name: string): void {
    const uid = this.#begun.get(name);
    if (uid !== undefined) this.#recorder?.end(uid);
    this.#begun.delete(name);
  }

  #begin(recorder: DecisionRecorder, check: KubeObject): void {
    const [name, { uid }] = [nameOf(check), check.metadata];
    if (this.#begun.get(name) === uid) return;
    this.forget(name);
    this.#begun.set(name, uid);
    recorder.begin(uid, `${check.kind} ${name}`);
  }
}
