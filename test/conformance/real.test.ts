import { after, before } from "node:test";
import { testConformance } from "./cases.ts";
import { connect, RUN } from "./real-server.ts";

// Checks that the recorded answers of the cases are those of the real API server.

let server: Awaited<ReturnType<typeof connect>>;

before(async () => {
  server = await connect();
});
after(() => server.close());

testConformance(RUN, () => server);
