import type { BareMetalRemediation } from "../api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import { KubeError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { keyOf } from "../kube/watched.ts";
import { sleep } from "../runtime/clock.ts";
import type { CliContext } from "./context.ts";
import { printNote } from "./context.ts";
import { CommandFailure } from "./failures.ts";
import { WaitingLine } from "./waiting-line.ts";

const POLL_MS = 1_000;
/** After this time without a sign of the agent, the user is asked to check it. */
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
  const told = new Set<string>();
  let trouble = "";
  let isSilenceTold = false;
  const waiting = new WaitingLine(context);
  for (;;) {
    try {
      const live = await runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, keyOf(created), signal);
      if (live.metadata.uid !== uid) throw new KubeError("NotFound", `${what} was deleted and created again`);
      trouble = "";
      tellSteps(context, live, told, waiting);
      if (verdictOf(live) !== undefined) {
        waiting.clear();
        return live;
      }
      waiting.show(whatFor(live));
      if (live.status?.phase === undefined && !isSilenceTold && clock.monotonicMs() - startMs > AGENT_SILENT_MS) {
        isSilenceTold = true;
        waiting.clear();
        printNote(context, "  no agent has taken it up yet: does `ironfence run` run, with the component remediator?");
      }
    } catch (error) {
      waiting.clear();
      if (!(error instanceof KubeError) || signal.aborted) throw error;
      if (error.code === "NotFound") throw new CommandFailure(`${what} was deleted before it had a verdict`);
      if (!error.retryable) throw error;
      // The API server may stand on the very node that is fenced.
      if (error.message !== trouble) printNote(context, `  ${error.message}: trying again`);
      trouble = error.message;
    }
    if (clock.monotonicMs() - startMs > timeoutMs) {
      waiting.clear();
      throw new CommandFailure(`no verdict in time; ${what} goes on: see ironfence status`);
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
  if (processing === undefined) return "no agent has taken it up yet";
  return [status?.phase, processing.reason, processing.message]
    .filter((part, i, all) => part !== all[i - 1])
    .join(": ");
}

/** The condition that says how it ended; undefined before. */
export function verdictOf({ status }: BareMetalRemediation) {
  const condition = status?.conditions?.find(({ type }) => type === "Succeeded");
  return condition === undefined || condition.status === "Unknown" ? undefined : condition;
}

function tellSteps(
  context: CliContext,
  { status }: BareMetalRemediation,
  told: Set<string>,
  waiting: WaitingLine,
): void {
  for (const { step, time, message } of status?.timeline ?? []) {
    const key = `${time} ${step}`;
    if (told.has(key)) continue;
    told.add(key);
    waiting.clear();
    printNote(context, `  ${time}  ${step}: ${message ?? ""}`);
  }
}
