import { test } from "node:test";
import { releaseRackOf40 } from "../sim/early-world.ts";

// The largest cluster that Kubernetes supports. `npm test` has the same test with 120 nodes.

void test("a rack of 40 hosts that loses its power in a cluster of 5,000 nodes is released before Kubernetes notices", () =>
  releaseRackOf40(5_000));
