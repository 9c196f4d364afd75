import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withHelmFolder } from "../../../hack/chart/render.ts";
import { NAMESPACE } from "../../../hack/e2e/world.ts";
import { run } from "../../../hack/lib/run.ts";

const TIMEOUT_MS = 120_000;

/**
 * Runs helm as a cluster administrator, in the namespace of the agent. The Deployment has no pods, because the agent is
 * a separate process.
 *
 * @param program the path of helm.
 * @returns the output of helm.
 */
export function runHelm(
  program: string,
  kubeconfig: string,
  args: readonly string[],
  values: object = {},
): Promise<string> {
  return withHelmFolder(async (options, own) => {
    const file = join(own, "values.json");
    await writeFile(file, JSON.stringify({ replicas: 0, ...values }));
    const flags = [
      `--namespace=${NAMESPACE}`,
      ...(/^(?:install|upgrade|template)/.test(args[0] ?? "") ? [`--values=${file}`] : []),
    ];
    const env = { ...options.env, KUBECONFIG: kubeconfig };
    return run(program, [...args, ...flags], { ...options, env, timeoutMs: TIMEOUT_MS });
  });
}
