import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { KubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { keyOf } from "../../kube/watched.ts";
import { sleep } from "../../runtime/clock.ts";
import type { CliContext } from "../terminal/context.ts";
import { printNote } from "../terminal/context.ts";
import { CommandFailure } from "../errors/failures.ts";
import { WaitingLine } from "../terminal/waiting-line.ts";

const POLL_MS = 1_000;
/** If no agent has begun after this time, a note asks the user to check the agent. */
const AGENT_SILENT_MS = 15_000;

/**
 * Prints each step of a remediation on standard error until it has its verdict.
 *
 * @returns the remediation with its verdict.
 * @throws CommandFailure if it is deleted before, or if `timeoutMs` have passed.
 */
export async function followRemediation(
  context: CliContext,
  runtime: KubeRuntime,
  created: KubeObject,
  timeoutMs: number,
): Promise<BareMetalRemediation> {
  const { clock, signal } = context;
  const { namespace, name, uid } = created.metadata;
  const what = `BareMetalRemediation ${namespace}/${name}`;
  const startMs = clock.monotonicMs();
  const printed = new Set<string>();
  let trouble = "";
  let hasReportedSilence = false;
  const waiting = new WaitingLine(context);
  for (;;) {
    try {
      const live = await runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, keyOf(created), signal);
      if (live.metadata.uid !== uid) throw new KubeError("NotFound", `${what} was deleted and created again`);
      trouble = "";
      printNewSteps(context, live, printed, waiting);
      if (verdictOf(live) !== undefined) {
        waiting.clear();
        return live;
      }
      waiting.show(whatFor(live));
      if (live.status?.phase === undefined && !hasReportedSilence && clock.monotonicMs() - startMs > AGENT_SILENT_MS) {
        hasReportedSilence = true;
        waiting.clear();
        printNote(
          context,
          "  no agent has begun it yet: check that `ironfence run` runs with the component remediator",
        );
      }
    } catch (error) {
      waiting.clear();
      if (!(error instanceof KubeError) || signal.aborted) throw error;
      if (error.code === "NotFound") {
        throw new CommandFailure(
          "FenceUnfinished",
          `${what} was deleted before it had a result, and the agent undoes it: see ironfence status`,
        );
      }
      if (!error.retryable) throw error;
      // The API server may run on the node that is being fenced, so a failure is tried again.
      if (error.message !== trouble) printNote(context, `  ${error.message}: trying again`);
      trouble = error.message;
    }
    if (clock.monotonicMs() - startMs > timeoutMs) {
      waiting.clear();
      throw new CommandFailure(
        "FenceUnfinished",
        `${what} has no result after ${timeoutMs / 1_000} s and continues: see ironfence status`,
      );
    }
    try {
      await sleep(clock, POLL_MS, signal);
    } catch (error) {
      waiting.clear();
      throw error;
    }
  }
}

/** What a remediation does or waits for now. */
function whatFor({ status }: BareMetalRemediation): string {
  const processing = status?.conditions?.find(({ type }) => type === "Processing");
  if (processing === undefined) return "no agent has begun it yet";
  return [status?.phase, processing.reason, processing.message]
    .filter((part, i, all) => part !== all[i - 1])
    .join(": ");
}

/** The condition that shows how the remediation ended; undefined before its end. */
export function verdictOf({ status }: BareMetalRemediation) {
  const condition = status?.conditions?.find(({ type }) => type === "Succeeded");
  return condition === undefined || condition.status === "Unknown" ? undefined : condition;
}

function printNewSteps(
  context: CliContext,
  { status }: BareMetalRemediation,
  printed: Set<string>,
  waiting: WaitingLine,
): void {
  for (const { step, time, message } of status?.timeline ?? []) {
    const key = `${time} ${step}`;
    if (printed.has(key)) continue;
    printed.add(key);
    waiting.clear();
    printNote(context, `  ${time}  ${step}: ${message ?? ""}`);
  }
}
