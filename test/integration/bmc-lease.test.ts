import assert from "node:assert/strict";
import { test } from "node:test";
import { forever, hasCode, openFake, RESET, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";

// An agent that is suspended during a call continues that call later, although another agent may have the lease by
// then.

test("no order leaves over Redfish once the process may give none, though the call has logged in and read before", async () => {
  await using bmc = await startFakeBmc();
  let isOrderAllowed = true;
  await using device = openFake(bmc, { isOrderAllowed: () => isOrderAllowed });
  bmc.override = ({ method, path }) => {
    if (method === "GET" && path === SYSTEM) isOrderAllowed = false;
    return undefined;
  };
  await assert.rejects(device.forceOff(forever()), hasCode("Aborted"));
  await assert.rejects(device.setBootOverride("NetworkOnce", forever()), hasCode("Aborted"));
  assert.equal((await device.readPower(forever())).state, "On");
  assert.deepEqual(
    bmc.log().filter((entry) => entry === `POST ${RESET}` || entry.startsWith("PATCH")),
    [],
  );
});

test("an order over IPMI whose first datagram was lost is not sent again if the process may no longer give orders", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({ steps: ["ChassisControl"], times: 1, action: { type: "loseRequest" } });
  let asked = 0;
  const device = world.open({ isOrderAllowed: () => (asked += 1) === 1 });
  await assert.rejects(device.forceOff(forever()), hasCode("Aborted"));
  assert.equal(asked, 2);
  assert.equal((await world.open().readPower(forever())).state, "On");
});
