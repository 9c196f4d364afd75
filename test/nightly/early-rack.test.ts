import { test } from "node:test";
import { releaseRackOf40, silenceAll } from "../sim/early-world.ts";

// The largest cluster that Kubernetes supports. `npm test` has the same tests with 120 and with 40 nodes.

void test("a rack of 40 hosts that loses its power in a cluster of 5,000 nodes is released before Kubernetes notices", () =>
  releaseRackOf40(5_000));

void test("5,000 nodes that are silent although their hosts are on have no early release, and 8 hosts read at most", () =>
  silenceAll(5_000));
