import { after, before } from "node:test";
import { testConformance } from "./cases.ts";
import { connect, RUN } from "./real-server.ts";

// The answers of the cases are those of the real API server: here it is asked again.

let server: Awaited<ReturnType<typeof connect>>;

before(async () => {
  server = await connect();
});
after(() => server.close());

testConformance(RUN, () => server);
