import { parseArgs } from "node:util";
import { benchAgent } from "./agent.ts";
import { benchBmc } from "./bmc.ts";
import { benchClusters } from "./clusters.ts";
import { benchDetector } from "./detector.ts";
import { benchFuzz } from "./fuzz.ts";
import { benchHostileClusters } from "./hostile.ts";
import { benchOrder } from "./order.ts";

const HELP = `Measures figures on this machine. They depend on the machine, so compare only figures of one run.

  npm run bench                        the agent at 1,000 nodes
  npm run bench -- agent --nodes 5000  the agent alone on an in-memory API server: memory, CPU, requests, reaction time
  npm run bench -- all                 agent --nodes 5000, clusters, hostile, order, bmc and fence, and one table of all figures with aims: counts, memory
                                       and ratios above their aims fail
  npm run bench -- detector            the detector at 100, 1,000 and 5,000 nodes (--nodes N: at N alone): 1, 5 and 50 % failing at once
  npm run bench -- clusters            the detector with 100 workload clusters of 50 nodes (--clusters N: with N): memory, and a tenth of them disconnected
  npm run bench -- hostile             whole fences in 95 workload clusters, without and with five more whose API servers try to bring the agent down
  npm run bench -- bmc                 the power drivers next to ipmitool and fence_redfish, and 500 hosts fenced at once
  npm run bench -- order               remediation created → power-off at a BMC that answers in 10 ms, prepared and not
  npm run bench -- fuzz --inputs N     every parser of external data (1,000,000 inputs in total; SEED=n repeats a run;
                                       --parser NAME, which may be repeated: only that one; --minutes N: N minutes for each)
  npm run bench -- fence               a whole fence on the real control plane with a BMC that takes 2 s per change (--grace N: nodes with
                                       leases of 40 s, which are Unknown after N seconds, 20 or more)
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    nodes: { type: "string" },
    clusters: { type: "string", default: "100" },
    inputs: { type: "string", default: "1000000" },
    minutes: { type: "string" },
    parser: { type: "string", multiple: true },
    grace: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});
const what = positionals[0] ?? "agent";
const nodeCount = Number(values.nodes ?? 1_000);
const clusterCount = Number(values.clusters);
const inputCount = Number(values.inputs);
const minutesEach = values.minutes === undefined ? undefined : Number(values.minutes);
const graceSeconds = values.grace === undefined ? undefined : Number(values.grace);
if (values.help) process.stdout.write(HELP);
else if (what === "agent" && Number.isInteger(nodeCount) && nodeCount >= 50) await benchAgent(nodeCount);
else if (what === "all") {
  const { benchAll } = await import("./all.ts");
  await benchAll(clusterCount);
} else if (what === "detector" && Number.isInteger(nodeCount) && nodeCount >= 100) {
  await benchDetector(values.nodes === undefined ? [100, 1_000, 5_000] : [nodeCount]);
} else if (what === "clusters" && Number.isInteger(clusterCount) && clusterCount > 0) await benchClusters(clusterCount);
else if (what === "hostile" && Number.isInteger(clusterCount) && clusterCount > 0)
  await benchHostileClusters(clusterCount);
else if (what === "bmc") await benchBmc();
else if (what === "order") await benchOrder();
else if (what === "fuzz" && Number.isInteger(inputCount) && inputCount > 0 && (minutesEach ?? 1) > 0)
  benchFuzz({ inputCount, minutesEach, parsers: values.parser });
else if (what === "fence" && (graceSeconds === undefined || graceSeconds >= 20)) {
  const { benchFence } = await import("./fence.ts");
  await benchFence(graceSeconds === undefined ? undefined : graceSeconds * 1_000);
} else {
  process.stderr.write(HELP);
  process.exitCode = 2;
}
