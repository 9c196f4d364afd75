import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { toMicroTime } from "../../runtime/time.ts";
import { CommandFailure, CommandRefusal } from "../errors/failures.ts";
import { findNode } from "../hosts/targets.ts";
import type { CliContext } from "../terminal/context.ts";
import { printNote } from "../terminal/context.ts";
import type { Plan } from "../terminal/plan.ts";
import { WaitingLine } from "../terminal/waiting-line.ts";
import { cordon, hasCordon, uncordon } from "./cordon.ts";
import { drainNode } from "./drain.ts";
import { followRemediation, verdictOf } from "./follow.ts";
import type { FencePreview } from "./preview.ts";
import { createRemediationByHand, deleteFinishedRemediation, withdrawRemediation } from "./remediation.ts";

/** The deadline of each call that restores the cluster, also after Ctrl-C. */
const UNDO_TIMEOUT_MS = 10_000;

/** A step of the drill that was done, and how long it took. */
export interface DrillStep {
  step: string;
  seconds: number;
}

/** What a drill would do, according to a read of the cluster just now. */
export interface PreparedDrill {
  preview: FencePreview;
  plan: Plan;
}

interface DrillOrder {
  nodeName: string;
  namespace: string;
  timeoutMs: number;
  drainTimeoutMs: number;
}

/**
 * One drill. As long as the host cannot have been ordered off, an error or Ctrl-C restores the node. After that, a note
 * names what is left behind.
 */
export class Drill {
  readonly #context: CliContext;
  readonly #runtime: KubeRuntime;
  readonly #order: DrillOrder;
  readonly #preview: FencePreview;
  readonly #planAgain: (mark: string) => Promise<PreparedDrill>;
  readonly #mark: string;
  readonly #steps: DrillStep[] = [];
  #mayBeOff = false;

  /** @param planAgain reads and plans, on a node that has the cordon with `mark`. */
  constructor(
    context: CliContext,
    runtime: KubeRuntime,
    order: DrillOrder,
    preview: FencePreview,
    planAgain: (mark: string) => Promise<PreparedDrill>,
  ) {
    this.#context = context;
    this.#runtime = runtime;
    this.#order = order;
    this.#preview = preview;
    this.#planAgain = planAgain;
    this.#mark = toMicroTime(context.clock.nowMs());
  }

  async run(): Promise<DrillStep[]> {
    const { node } = this.#preview;
    const { signal } = this.#context;
    let ended: BareMetalRemediation;
    try {
      await this.#time("cordoned", () => cordon(this.#runtime, node, this.#mark, signal));
      await this.#time("drained", () => this.#drain());
      const { preview } = await this.#ensureStillAllowed();
      ended = await this.#time("fenced and back", () => this.#fence(preview));
    } catch (error) {
      if (!this.#mayBeOff && (await this.#uncordon())) {
        printNote(this.#context, `node ${node.metadata.name} is uncordoned again; evicted pods are not moved back`);
      }
      throw error;
    }
    // From here on, Ctrl-C has no effect: the rest only cleans up.
    await deleteFinishedRemediation(this.#context, this.#runtime, ended, new AbortController().signal);
    await this.#time("uncordoned", async () => {
      if ((await this.#uncordon()) === undefined)
        throw new CommandFailure("FenceFailed", `node ${node.metadata.name} is back, but could not be uncordoned`);
    });
    return this.#steps;
  }

  async #drain(): Promise<void> {
    const waiting = new WaitingLine(this.#context);
    const { nodeName, drainTimeoutMs: timeoutMs } = this.#order;
    const { signal } = this.#context;
    const check = async (): Promise<void> => {
      const node = await findNode(this.#runtime, nodeName, signal);
      if (node !== undefined && hasCordon(node, this.#mark)) return;
      const why = `node ${nodeName} is not cordoned by this drill any more: another user or tool has changed it`;
      throw new CommandFailure("DrainUnfinished", why);
    };
    try {
      const onWait = (what: string): void => waiting.show(what);
      await drainNode(this.#runtime, nodeName, { timeoutMs, onWait, check }, signal);
    } finally {
      waiting.clear();
    }
  }

  /** The drain may have taken long, so plans again. Anything that would prevent the drill now prevents the fence. */
  async #ensureStillAllowed(): Promise<PreparedDrill> {
    const prepared = await this.#planAgain(this.#mark);
    const { obstacles } = prepared.plan;
    if (obstacles.length === 0) return prepared;
    const { nodeName } = this.#order;
    throw new CommandRefusal(
      "Refused",
      `node ${nodeName} is drained but not fenced, since ${obstacles.join("; and ")}. Nothing was powered off`,
    );
  }

  async #fence(preview: FencePreview): Promise<BareMetalRemediation> {
    const { nodeName, namespace, timeoutMs } = this.#order;
    const order = { namespace, nodeName, strategy: "Reboot" } as const;
    const context = this.#context;
    const created = await this.#create(() =>
      createRemediationByHand(this.#runtime, preview, order, false, context.signal),
    );
    printNote(context, `BareMetalRemediation ${namespace}/${created.metadata.name} is created`);
    let ended: BareMetalRemediation;
    try {
      ended = await followRemediation(context, this.#runtime, created, timeoutMs);
    } catch (error) {
      throw await this.#withdraw(created, error);
    }
    const verdict = verdictOf(ended);
    if (verdict?.status === "True") return ended;
    throw new CommandFailure(
      "FenceFailed",
      `node ${nodeName}: ${verdict?.reason}: ${verdict?.message}; left behind: BareMetalRemediation ${namespace}/${ended.metadata.name}, so that you can read it, and node ${nodeName} is cordoned. ${this.#nextSteps(ended)}`,
    );
  }

  async #create(create: () => Promise<KubeObject>): Promise<KubeObject> {
    const { nodeName, namespace } = this.#order;
    this.#mayBeOff = true;
    try {
      return await create();
    } catch (error) {
      // Unless the API server itself has refused it, it may have stored the remediation.
      this.#mayBeOff = !isKubeError(
        error,
        "Forbidden",
        "Invalid",
        "BadRequest",
        "NotFound",
        "Unauthorized",
        "TooManyRequests",
      );
      if (this.#mayBeOff) {
        const lists = `kubectl get baremetalremediations -n ${namespace} would list it as ${nodeName}-by-hand-…`;
        const next = `Delete it if it is there; once the node is Ready: kubectl uncordon ${nodeName}`;
        const what = `a BareMetalRemediation may exist (${lists}), and node ${nodeName} is cordoned`;
        printNote(this.#context, `left behind: ${what}. ${next}`);
      }
      throw error;
    }
  }

  /**
   * Deletes the remediation if its host was not ordered off yet; otherwise prints what is left behind. @returns what to
   * throw.
   */
  async #withdraw(created: KubeObject, cause: unknown): Promise<unknown> {
    const { nodeName, namespace } = this.#order;
    const what = `BareMetalRemediation ${namespace}/${created.metadata.name}`;
    let withdrawn: BareMetalRemediation | undefined;
    try {
      withdrawn = await this.#undo(`deleting ${what}`, (signal) => withdrawRemediation(this.#runtime, created, signal));
    } catch (error) {
      printNote(this.#context, `${what} could not be deleted: ${messageOf(error)}`);
    }
    if (withdrawn === undefined) {
      const next = this.#nextSteps(created);
      printNote(this.#context, `left behind: ${what} continues, and node ${nodeName} is cordoned. ${next}`);
      return cause;
    }
    this.#mayBeOff = false;
    printNote(this.#context, `${what} is deleted again: the host was not ordered off`);
    if (!(cause instanceof CommandFailure) || cause.code !== "FenceUnfinished") return cause;
    const waits = withdrawn.status?.conditions?.find(({ type }) => type === "Processing");
    const why =
      waits === undefined ? "no agent has begun the fence" : `the fence waited: ${waits.reason}: ${waits.message}`;
    return new CommandFailure("FenceUnfinished", `node ${nodeName} was not powered off in time, since ${why}`);
  }

  #nextSteps({ metadata }: KubeObject): string {
    const { nodeName } = this.#order;
    return `Delete the remediation (kubectl delete baremetalremediation -n ${metadata.namespace} ${metadata.name}), which undoes a fence that is not over; once the node is Ready: kubectl uncordon ${nodeName}`;
  }

  async #time<T>(step: string, work: () => Promise<T>): Promise<T> {
    const { clock } = this.#context;
    const startMs = clock.monotonicMs();
    const result = await work();
    const seconds = Math.round((clock.monotonicMs() - startMs) / 100) / 10;
    this.#steps.push({ step, seconds });
    printNote(this.#context, `  ${step} after ${seconds} s`);
    return result;
  }

  /** @returns whether the node had the cordon of this drill; undefined, with a note, if it may still have it. */
  async #uncordon(): Promise<boolean | undefined> {
    const { node } = this.#preview;
    const { name } = node.metadata;
    try {
      return await this.#undo(`uncordoning ${name}`, (signal) => uncordon(this.#runtime, node, this.#mark, signal));
    } catch (error) {
      printNote(
        this.#context,
        `left behind: node ${name} may be cordoned (${messageOf(error)}): kubectl uncordon ${name}`,
      );
      return undefined;
    }
  }

  /** Runs `work` with a signal of its own, because that of the command may have been aborted. */
  #undo<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline(this.#context.clock, what, UNDO_TIMEOUT_MS, new AbortController().signal, work);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
