import { after, before } from "node:test";
import { createApiServer } from "../../hack/kube-mock/api-server.ts";
import { startClusterControllers } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { testConformance } from "./cases.ts";
import type { ServerUnderTest } from "./cases.ts";

// The in-memory API server must give the answers of the real one, which real.test.ts checks.

let server: ServerUnderTest;
let stop: () => Promise<void>;

before(async () => {
  const apiServer = createApiServer({ clock: systemClock, random: systemRandom });
  for (const yaml of await readCrds()) apiServer.load(yaml);
  // Deleted namespaces are removed, as by the controller manager of the real control plane.
  const stopControllers = startClusterControllers({ server: apiServer, clock: systemClock });
  const transport = apiServer.transport({ client: "conformance" });
  server = { transport, compact: async () => apiServer.compact() };
  stop = async () => {
    await transport.close();
    stopControllers();
    apiServer.close();
  };
});
after(() => stop());

testConformance("mock", () => server);
