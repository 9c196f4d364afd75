import { systemClock } from "../../src/runtime/system.ts";
import type { FaultyBmc } from "./control.ts";
import { startControlEndpoint } from "./control.ts";
import type { Rack } from "./rack.ts";
import type { ScenarioStep } from "./scenario.ts";
import { playScenario } from "./scenario.ts";

/** A mock that serves until it is closed. */
interface ServedBmc extends FaultyBmc {
  close(): Promise<void>;
}

/** Starts the control endpoint of a rack and its scenario, until this process gets a signal to end. */
export async function serveRack(
  rack: Rack,
  bmcs: ReadonlyMap<string, ServedBmc>,
  { help, controlPort, steps }: { help: string; controlPort: number; steps: readonly ScenarioStep[] },
): Promise<void> {
  const control = await startControlEndpoint({ rack, bmcs, help, port: controlPort });
  console.log(`control  ${control.url}`);
  const stopScenario = playScenario({ clock: systemClock, rack, bmcs }, steps, (step, error) => {
    console.log(`scenario  ${JSON.stringify(step)}${error instanceof Error ? `: ${error.message}` : ""}`);
  });
  const stop = async (): Promise<void> => {
    stopScenario();
    rack.stop();
    await Promise.all([control.close(), ...[...bmcs.values()].map((bmc) => bmc.close())]);
  };
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => void stop());
}
