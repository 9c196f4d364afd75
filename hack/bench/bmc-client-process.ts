import { fence, openBmc, ownCpuMs } from "./bmc-clients.ts";
import type { AtOnceResult, AtOnceTask } from "./bmc-rack-at-once.ts";
import { readUsage } from "./process-usage.ts";

// The child process of bmc-rack-at-once.ts. It fences all hosts at once and reports time, CPU and memory.

const TIMEOUT_MS = 120_000;

process.once("message", (task: AtOnceTask) => {
  run(task).then(
    (result) => process.send?.(result, () => process.disconnect()),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});

async function run({ bmcs, warmUp, sha256Fingerprint }: AtOnceTask): Promise<AtOnceResult> {
  for (const bmc of warmUp) await fence(openBmc({ sha256Fingerprint }, bmc), TIMEOUT_MS);
  const { rssBytes: rssBeforeBytes } = await readUsage(process.pid);
  const provenAtMs: Record<string, number> = {};
  const startMs = performance.now();
  const cpuStartMs = ownCpuMs();
  await Promise.all(
    bmcs.map(async (bmc) => {
      const proof = await fence(openBmc({ sha256Fingerprint }, bmc), TIMEOUT_MS);
      if (!proof.proven) throw new Error(`${bmc.name} is not proven off`, { cause: proof.error });
      provenAtMs[bmc.name] = Date.now();
    }),
  );
  const totalMs = performance.now() - startMs;
  const cpuMs = ownCpuMs() - cpuStartMs;
  const { rssPeakBytes } = await readUsage(process.pid);
  return { totalMs, cpuMs, rssBeforeBytes, rssPeakBytes, provenAtMs };
}
