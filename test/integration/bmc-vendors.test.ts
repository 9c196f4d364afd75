import assert from "node:assert/strict";
import { test } from "node:test";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { forever, hasCode, openFake, PASSWORD, startFakeBmc } from "./bmc-fixture.ts";
import type { FakeBmc, Json, Reply, Request } from "./bmc-fixture.ts";
import { VENDORS } from "./bmc-vendors.ts";
import type { TreeState, Vendor } from "./bmc-vendors.ts";

// The same fence with the resource tree and the special behavior of each vendor's server.

const TOKEN = "vendor-token";

/** Makes the fake answer as this vendor's service does. */
function serve(bmc: FakeBmc, vendor: Vendor): TreeState {
  const resources = structuredClone(vendor.resources);
  const state: TreeState = { power: "On", count: 0, resources };
  bmc.override = (request) => {
    for (const path of [vendor.systemPath, ...vendor.chassis]) {
      const resource = resources[path];
      if (resource !== undefined) resource["PowerState"] = state.power;
    }
    const isOpen = request.path === "/redfish/v1/" || isLogin(vendor, request);
    if (!isOpen && !isLoggedIn(bmc, vendor, request)) {
      const own = vendor.quirk?.(request, state);
      const refusesPath = own !== undefined && own !== "reset" && own !== "hang" && own.status !== 200;
      return refusesPath && request.path.includes("SessionService") ? own : { status: 401 };
    }
    return vendor.quirk?.(request, state) ?? answer(bmc, vendor, state, request);
  };
  return state;
}

function answer(bmc: FakeBmc, vendor: Vendor, state: TreeState, request: Request): Reply {
  const { method, path, body } = request;
  const resource = state.resources[path] ?? state.resources[path.replace(/\/$/, "")];
  if (isLogin(vendor, request)) {
    if (body["UserName"] !== "fence" || body["Password"] !== PASSWORD) return { status: 401 };
    const location = `${vendor.sessions?.path.replace(/\/$/, "") ?? ""}/7`;
    bmc.sessions.add(location);
    const headers = { "x-auth-token": TOKEN, location: vendor.sessions?.location(location) ?? location };
    return { status: 201, headers, body: { "@odata.id": location } };
  }
  if (method === "DELETE") return { status: bmc.sessions.delete(path.replace(/\/$/, "")) ? 204 : 404 };
  if (method === "POST" && path === vendor.resetPath) {
    state.power = body["ResetType"] === "ForceOff" ? "Off" : "On";
    return { status: 204 };
  }
  if (resource === undefined) return { status: 404 };
  if (method === "GET") return { status: 200, body: resource };
  if (method === "PATCH" && path.replace(/\/$/, "") === (vendor.bootPath ?? vendor.systemPath)) {
    Object.assign(resource["Boot"] as Json, body["Boot"]);
    return { status: 204 };
  }
  return { status: 405 };
}

function isLogin(vendor: Vendor, { method, path }: Request): boolean {
  return method === "POST" && vendor.sessions !== undefined && path === vendor.sessions.path;
}

function isLoggedIn(bmc: FakeBmc, vendor: Vendor, { headers }: Request): boolean {
  if (vendor.sessions !== undefined) return headers["x-auth-token"] === TOKEN && bmc.sessions.size > 0;
  return headers.authorization === `Basic ${Buffer.from(`fence:${PASSWORD}`).toString("base64")}`;
}

/** Whether a request writes only a session, a power order or the boot override. */
function isExpectedWrite(vendor: Vendor, request: Request): boolean {
  const { method, path, body } = request;
  const isLoginTried = method === "POST" && path.replace(/\/$/, "").endsWith("/SessionService/Sessions");
  if (isLoginTried || isLogin(vendor, request) || (method === "DELETE" && path.includes("/Sessions/"))) return true;
  if (method === "POST") return path === vendor.resetPath && Object.keys(body).join() === "ResetType";
  const keys = Object.keys(body["Boot"] ?? {});
  const isBoot = keys.length > 0 && keys.every((key) => key.startsWith("BootSourceOverride"));
  return method === "PATCH" && Object.keys(body).join() === "Boot" && isBoot;
}

/** Orders On like the remediator: it repeats the order if the BMC cannot do it yet. */
async function orderOn(device: PowerDriver): Promise<void> {
  try {
    await device.on(forever());
  } catch (error) {
    assert.ok(error instanceof BmcError && error.code === "Refused" && error.retryable, String(error));
    await device.on(forever());
  }
}

for (const vendor of VENDORS) {
  test(vendor.name, async () => {
    await using bmc = await startFakeBmc();
    const state = serve(bmc, vendor);
    const device = openFake(bmc, { path: vendor.path });
    const readPower = async (): Promise<string> => (await device.readPower(forever())).state;

    const { device: path, systemUUID, serialNumber } = await device.identify(forever());
    assert.equal(path.replace(/\/$/, ""), vendor.systemPath);
    assert.deepEqual(
      { systemUUID, serialNumber },
      { systemUUID: undefined, serialNumber: undefined, ...vendor.expected },
    );
    assert.equal(await readPower(), "On");

    await device.forceOff(forever());
    assert.equal(state.power, "Off");
    assert.deepEqual([await readPower(), await readPower()], ["Off", "Off"]);
    await device.forceOff(forever());
    assert.equal(await readPower(), "Off", "off again is not an error");

    if (vendor.boots) {
      const mode = bootOf(vendor, state)["BootSourceOverrideMode"];
      await device.setBootOverride("NetworkOnce", forever());
      assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
      assert.equal(bootOf(vendor, state)["BootSourceOverrideTarget"], "Pxe");
      assert.equal(bootOf(vendor, state)["BootSourceOverrideMode"], mode, "the mode is as it was");
      await device.setBootOverride("None", forever());
      assert.equal(await device.readBootOverride(forever()), "None");
    } else {
      await assert.rejects(device.setBootOverride("NetworkOnce", forever()), hasCode("Unsupported"));
    }

    await orderOn(device);
    assert.equal(await readPower(), "On");
    await device.on(forever());
    await device.close();
    assert.equal(bmc.sessions.size, 0, "no session is left");
    const logins = bmc.requests.filter(({ body }) => body["Password"] !== undefined);
    assert.ok(logins.length <= 2, bmc.log().join("\n"));
    const writes = bmc.requests.filter((request) => request.method !== "GET" && !isExpectedWrite(vendor, request));
    assert.deepEqual(writes, [], "nothing is written but sessions, orders and the boot override");
  });
}

test("no System of a host with several Systems is chosen by chance", async () => {
  const vendor = VENDORS.find(({ path }) => path !== "");
  assert.ok(vendor !== undefined);
  await using bmc = await startFakeBmc();
  const state = serve(bmc, vendor);
  await using device = openFake(bmc);
  await assert.rejects(device.forceOff(forever()), hasCode("SystemAmbiguous", /HGX_Baseboard_0/));
  assert.equal(state.power, "On");
});

test("the System with the identity of the host is chosen if it is the only one with it", async () => {
  const vendor = VENDORS.find(({ path }) => path !== "");
  assert.ok(vendor !== undefined);
  const other = "/redfish/v1/Systems/HGX_Baseboard_0";
  for (const [otherUuid, wanted, expected] of [
    ["11111111-0000-4000-8000-000000000001", vendor.expected.systemUUID, vendor.systemPath],
    ["11111111-0000-4000-8000-000000000001", "11111111-0000-4000-8000-000000000001", other],
    ["11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000001", "SystemAmbiguous"],
    [vendor.expected.systemUUID, vendor.expected.systemUUID, "SystemAmbiguous"],
  ] as const) {
    await using bmc = await startFakeBmc();
    const state = serve(bmc, vendor);
    state.resources[other] = { ...state.resources[vendor.systemPath], "@odata.id": other, UUID: otherUuid };
    await using device = openFake(bmc, { isHost: ({ systemUUID }) => systemUUID === wanted });
    if (expected === "SystemAmbiguous") {
      await assert.rejects(device.forceOff(forever()), hasCode(expected));
      assert.equal(state.power, "On");
    } else assert.equal((await device.identify(forever())).device, expected);
  }
});

function bootOf(vendor: Vendor, { resources }: TreeState): Json {
  return resources[vendor.bootPath ?? vendor.systemPath]?.["Boot"] as Json;
}
