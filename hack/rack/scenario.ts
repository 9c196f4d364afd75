import { parse } from "yaml";
import { z } from "zod";
import { commandSchema, runCommand } from "./commands.ts";
import type { FaultyBmc } from "./control.ts";
import type { Rack } from "./rack.ts";
import type { Clock } from "../../src/runtime/clock.ts";

/** Help on scenario files. */
export const SCENARIO_HELP = `A scenario file is a list in YAML or JSON; each step happens afterMs milliseconds after the start:

  - { afterMs: 5000, host: host-1, command: { do: hang } }
  - { afterMs: 6000, bmc: host-1, fault: { times: 1, action: { type: restartBmc, effect: done, downMs: 8000 } } }
  - { afterMs: 9000, bmc: host-1, fault: null }     # removes all its faults

Commands, to hosts: hang, resume, failDisk, cutMains, restoreMains, order (order), reachability (reachability: up, refused or
silent), restartBmc (downMs), delayOrders (delayMs). False reports of a BMC: pretendPower (power, forMs), freezePower (forMs: old state),
flapPower (forMs: every other reading is Off), pretendIdentity (identity), rewire (host: another host answers).
`;

const stepSchema = z.union([
  z.strictObject({ afterMs: z.number().min(0), host: z.string(), command: commandSchema }),
  z.strictObject({ afterMs: z.number().min(0), bmc: z.string(), fault: z.unknown() }),
]);
export type ScenarioStep = z.infer<typeof stepSchema>;

/** Parses a scenario file. @throws Error if a step is invalid. The mock of the BMC checks faults later. */
export function parseScenario(text: string): readonly ScenarioStep[] {
  return z.array(stepSchema).parse(parse(text));
}

/**
 * Plays a scenario from now on.
 *
 * @param onStep called for each step when it happens, with the error if it failed.
 * @returns a function that stops the scenario.
 */
export function playScenario(
  deps: { clock: Clock; rack: Rack; bmcs: ReadonlyMap<string, FaultyBmc> },
  steps: readonly ScenarioStep[],
  onStep: (step: ScenarioStep, error: unknown) => void,
): () => void {
  const timers = steps.map((step) =>
    deps.clock.schedule(step.afterMs, () => {
      try {
        obey(deps, step);
        onStep(step, undefined);
      } catch (error) {
        onStep(step, error);
      }
    }),
  );
  return () => {
    for (const timer of timers) timer.cancel();
  };
}

function obey({ rack, bmcs }: { rack: Rack; bmcs: ReadonlyMap<string, FaultyBmc> }, step: ScenarioStep): void {
  if ("command" in step) {
    runCommand(rack, step.host, step.command);
    return;
  }
  const bmc = bmcs.get(step.bmc);
  if (bmc === undefined) throw new Error(`no BMC is named ${step.bmc}`);
  if (step.fault === null) bmc.clearFaults();
  else bmc.addFault(step.fault);
}
