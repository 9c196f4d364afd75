import { writeFile } from "node:fs/promises";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { readCrds } from "../lib/crds.ts";
import { parseOptions } from "../lib/options.ts";
import { startClusterControllers } from "./controllers/cluster-controllers.ts";
import { CONTROL_PATH } from "./control.ts";
import { startKubeMock } from "./kube-mock.ts";

const HELP = `An in-memory Kubernetes API server on 127.0.0.1, with ironfence's CRDs and simulated controllers.

  npx node hack/kube-mock/main.ts [options]

    --port N            port to listen on (default: a free one)
    --tls               speak HTTPS, with a certificate of a throw-away CA
    --token TEXT        the only accepted bearer token (default: every client is accepted)
    --kubeconfig FILE   write a kubeconfig for this server
    --no-controllers    run no simulated controllers, only the API
    --help              print this

There are no kubelets, so Nodes are not Ready unless a client renews their Leases. To inject faults, for example:

  curl -X POST URL${CONTROL_PATH} -d '{"command":"inject","times":3,"match":{"method":"PATCH"},"action":{"kind":"status","status":500}}'
  curl -X POST URL${CONTROL_PATH} -d '{"command":"cutWatches"}'

Commands: inject (actions status, hang, drop, loseAnswer, delay, late), lagWatches, cutWatches, compact, clear.
`;

const values = parseOptions({
  port: { type: "string" },
  tls: { type: "boolean", default: false },
  token: { type: "string" },
  kubeconfig: { type: "string" },
  "no-controllers": { type: "boolean", default: false },
  help: { type: "boolean", default: false },
});
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const port = Number(values.port ?? 0);
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  process.stderr.write(`--port must be a number from 0 to 65535, not ${values.port}\n`);
  process.exit(2);
}

const { token, tls } = values;
const mock = await startKubeMock({
  clock: systemClock,
  random: systemRandom,
  port,
  tls,
  ...(token !== undefined && { token }),
});
for (const yaml of await readCrds()) mock.server.load(yaml);
const stopControllers = values["no-controllers"]
  ? () => undefined
  : startClusterControllers({ server: mock.server, clock: systemClock });
if (values.kubeconfig !== undefined) await writeFile(values.kubeconfig, mock.kubeconfig, { mode: 0o600 });
process.stdout.write(`kube-mock: ${mock.url}\n`);
if (values.kubeconfig === undefined) process.stdout.write(mock.kubeconfig);
else process.stdout.write(`kube-mock: export KUBECONFIG=${values.kubeconfig}\n`);

for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => {
    stopControllers();
    mock.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
}
