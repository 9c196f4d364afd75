import assert from "node:assert/strict";
import { it } from "node:test";
import { BEFORE_UNKNOWN_MS, begun, runEarly } from "./early-world.ts";
import { giveOutlets, OUTLETS, storeEnrolment } from "./outlets.ts";

it("there is no early release of a host whose plugs were moved before its outlets were switched off by hand", () =>
  runEarly({}, async (world) => {
    giveOutlets(world, "n1");
    storeEnrolment(world, "n1");
    await world.clock.advance(20_000);
    for (const address of OUTLETS) {
      world.devices.pdus.outlet(address).feeds = [];
      world.devices.pdus.switch(address, false);
    }
    world.rack.bmc("n1").setReachability("refused");
    world.rack.host("n1").hang();
    await world.clock.advance(BEFORE_UNKNOWN_MS);
    assert.deepEqual(begun(world), []);
    assert.equal(world.target("n1")?.status?.earlyOffProof, undefined);
  }));
