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

const POLL_MS = 1_000;
/** After so long without a word of the agent a person is told to look after it. */
const AGENT_SILENT_MS = 15_000;

/**
 * Tells each step of a remediation on standard error until it has its verdict.
 *
 * @returns the remediation with its verdict.
 * @throws CommandFailure where it is deleted before, or `timeoutMs` have passed.
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
  for (;;) {
    try {
      const live = await runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, keyOf(created), signal);
      if (live.metadata.uid !== uid) throw new KubeError("NotFound", `${what} was deleted and made anew`);
      trouble = "";
      tellSteps(context, live, told);
      if (verdictOf(live) !== undefined) return live;
      if (live.status?.phase === undefined && !isSilenceTold && clock.monotonicMs() - startMs > AGENT_SILENT_MS) {
        isSilenceTold = true;
        printNote(context, "  no agent has taken it up yet: does `ironfence run` run, with the component remediator?");
      }
    } catch (error) {
      if (!(error instanceof KubeError) || signal.aborted) throw error;
      if (error.code === "NotFound") throw new CommandFailure(`${what} was deleted before it had a verdict`);
      if (!error.retryable) throw error;
      // The API server may stand on the very node that is fenced.
      if (error.message !== trouble) printNote(context, `  ${error.message}: trying again`);
      trouble = error.message;
    }
    if (clock.monotonicMs() - startMs > timeoutMs) {
      throw new CommandFailure(`no verdict in time; ${what} goes on: see ironfence status`);
    }
    await sleep(clock, POLL_MS, signal);
  }
}

/** The condition that says how it ended; undefined before. */
export function verdictOf({ status }: BareMetalRemediation) {
  const condition = status?.conditions?.find(({ type }) => type === "Succeeded");
  return condition === undefined || condition.status === "Unknown" ? undefined : condition;
}

function tellSteps(context: CliContext, { status }: BareMetalRemediation, told: Set<string>): void {
  for (const { step, time, message } of status?.timeline ?? []) {
    const key = `${time} ${step}`;
    if (told.has(key)) continue;
    told.add(key);
    printNote(context, `  ${time}  ${step}: ${message ?? ""}`);
  }
}
