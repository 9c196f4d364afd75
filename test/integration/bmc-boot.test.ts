import assert from "node:assert/strict";
import { test } from "node:test";
import { forever, hasCode, ok, openFake, redfishError, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Json } from "./bmc-fixture.ts";

const patches = (bmc: FakeBmc) => bmc.requests.filter(({ method }) => method === "PATCH");
const NETWORK = { Boot: { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "Pxe" } };

test("the override is set for one boot, read back and cleared, and the boot mode stays as it is", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  assert.equal(await device.readBootOverride(forever()), "None");
  await device.setBootOverride("NetworkOnce", forever());
  assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
  await device.setBootOverride("None", forever());
  assert.equal(await device.readBootOverride(forever()), "None");
  assert.deepEqual(
    patches(bmc).map(({ body }) => body),
    [NETWORK, { Boot: { BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "None" } }],
  );
});

test("the driver sends no request to clear a boot override that is not set", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  await device.setBootOverride("None", forever());
  assert.deepEqual(patches(bmc), []);
});

test("any override that boots from the network counts as set, any other as none", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  for (const [enabled, target, expected] of [
    ["Once", "Pxe", "NetworkOnce"],
    ["Once", "UefiHttp", "NetworkOnce"],
    ["Continuous", "Pxe", "NetworkOnce"],
    ["Disabled", "Pxe", "None"],
    ["Once", "Hdd", "None"],
    ["Once", "None", "None"],
    [null, null, "None"],
  ]) {
    bmc.system["Boot"] = { BootSourceOverrideEnabled: enabled, BootSourceOverrideTarget: target };
    assert.equal(await device.readBootOverride(forever()), expected, `${enabled} ${target}`);
  }
});

test("an ETag from a header or a body is sent back as If-Match, and nothing is sent without one", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  await device.setBootOverride("NetworkOnce", forever());
  bmc.override = ({ method, path }) =>
    method === "GET" && path === SYSTEM ? ok(bmc.system, { etag: 'W/"12"' }) : undefined;
  await device.setBootOverride("NetworkOnce", forever());
  bmc.override = () => undefined;
  bmc.system["@odata.etag"] = 'W/"13"';
  await device.setBootOverride("NetworkOnce", forever());
  assert.deepEqual(
    patches(bmc).map(({ headers }) => headers["if-match"]),
    [undefined, 'W/"12"', 'W/"13"'],
  );
});

test("a write that lost a race is done again once, on what is there now", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  let etag = 1;
  let refusals = 1;
  bmc.override = ({ method, path }) => {
    if (path !== SYSTEM) return undefined;
    if (method === "GET") return ok(bmc.system, { etag: `"${etag}"` });
    if (refusals === 0) return undefined;
    refusals -= 1;
    etag += 1;
    return { status: 412 };
  };
  await device.setBootOverride("NetworkOnce", forever());
  assert.deepEqual(
    patches(bmc).map(({ headers }) => headers["if-match"]),
    ['"1"', '"2"'],
  );
  refusals = 9;
  await assert.rejects(device.setBootOverride("NetworkOnce", forever()), hasCode("Refused", /412/));
  // Two attempts above. The next ones use the tag as it is, the tag as a strong one, and any tag. Then the refusal is
  // final.
  assert.deepEqual(
    patches(bmc)
      .slice(2)
      .map(({ headers }) => headers["if-match"]),
    ['"2"', '"3"', "*"],
  );
});

test("a weak ETag that is compared strictly is sent again as a strong one, and a required ETag that was not given is sent as *", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  const sent: unknown[] = [];
  let given: Record<string, string> = { etag: 'W/"5"' };
  let wanted = '"5"';
  bmc.override = ({ path, method, headers }) => {
    if (path !== SYSTEM) return undefined;
    if (method === "GET") return ok(bmc.system, given);
    sent.push(headers["if-match"]);
    if (headers["if-match"] === undefined) return { status: 428 };
    return headers["if-match"] === wanted ? undefined : { status: 412 };
  };
  await device.setBootOverride("NetworkOnce", forever());
  assert.deepEqual(sent.splice(0), ['W/"5"', '"5"']);
  given = {};
  wanted = "*";
  await device.setBootOverride("None", forever());
  assert.deepEqual(sent, [undefined, "*"]);
  assert.equal(await device.readBootOverride(forever()), "None");
});

for (const mode of ["UEFI", "Legacy"]) {
  test(`a BMC that forgets or requires the boot mode ${mode} is sent the present boot mode`, async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc);
    const other = mode === "UEFI" ? "Legacy" : "UEFI";
    const boot = bmc.system["Boot"] as Json;
    boot["BootSourceOverrideMode"] = mode;
    bmc.override = ({ method, body }) => {
      const named = (body["Boot"] as Json | undefined)?.["BootSourceOverrideMode"];
      if (method === "PATCH" && named === undefined) boot["BootSourceOverrideMode"] = other;
      return undefined;
    };
    await device.setBootOverride("NetworkOnce", forever());
    assert.equal(boot["BootSourceOverrideMode"], mode);
    bmc.override = ({ method, body }) =>
      method === "PATCH" && (body["Boot"] as Json)["BootSourceOverrideMode"] === undefined
        ? redfishError(400, "Base.1.8.PropertyMissing")
        : undefined;
    await device.setBootOverride("NetworkOnce", forever());
    assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
    assert.equal(boot["BootSourceOverrideMode"], mode);
  });
}

test("a BMC that refuses the target None gets Disabled alone", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  await device.setBootOverride("NetworkOnce", forever());
  bmc.override = ({ method, body }) =>
    method === "PATCH" && "BootSourceOverrideTarget" in (body["Boot"] as Json)
      ? redfishError(400, "Base.1.8.PropertyValueNotInList")
      : undefined;
  await device.setBootOverride("None", forever());
  assert.equal(await device.readBootOverride(forever()), "None");
});

test("HTTP boot is used if the firmware offers no other network boot", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  (bmc.system["Boot"] as Json)["BootSourceOverrideTarget@Redfish.AllowableValues"] = ["None", "UefiHttp", "Hdd"];
  await device.setBootOverride("NetworkOnce", forever());
  assert.deepEqual(
    patches(bmc).map(({ body }) => body),
    [{ Boot: { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "UefiHttp" } }],
  );
  assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
});

test("a settings object that holds the boot override is written and read in the System's place", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  const path = `${SYSTEM}/Settings`;
  const settings: Json = { Boot: { BootSourceOverrideEnabled: "Disabled" } };
  bmc.system["@Redfish.Settings"] = { SettingsObject: { "@odata.id": path } };
  bmc.override = (request) => {
    if (request.path !== path) return undefined;
    if (request.method === "GET") return ok(settings, { etag: '"s1"' });
    Object.assign(settings, request.body);
    return { status: 200, body: "" };
  };
  await device.setBootOverride("NetworkOnce", forever());
  assert.deepEqual(
    patches(bmc).map(({ path, headers }) => [path, headers["if-match"]]),
    [[path, '"s1"']],
  );
  assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
});

test("a settings object without a boot override leaves it to the System", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  bmc.system["@Redfish.Settings"] = { SettingsObject: { "@odata.id": `${SYSTEM}/Settings` } };
  for (const reply of [ok({ Bios: {} }), ok({ Boot: { BootOrder: ["Boot0001"] } }), { status: 404 }] as const) {
    bmc.override = ({ path }) => (path === `${SYSTEM}/Settings` ? reply : undefined);
    await device.setBootOverride("NetworkOnce", forever());
    assert.equal(patches(bmc).at(-1)?.path, SYSTEM);
  }
});

test("a boot source that the BMC does not offer is not ordered", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  (bmc.system["Boot"] as Json)["BootSourceOverrideTarget@Redfish.AllowableValues"] = ["None", "Hdd", "Cd"];
  await assert.rejects(device.setBootOverride("NetworkOnce", forever()), hasCode("Unsupported", /network/));
  delete bmc.system["Boot"];
  await assert.rejects(device.setBootOverride("NetworkOnce", forever()), hasCode("Unsupported"));
  await assert.rejects(device.readBootOverride(forever()), hasCode("Unsupported"));
  assert.deepEqual(patches(bmc), []);
});

test("a write whose answer is lost is not repeated", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  bmc.override = ({ method }) => (method === "PATCH" ? "reset" : undefined);
  await assert.rejects(device.setBootOverride("NetworkOnce", forever()), hasCode("Unreachable"));
  assert.equal(patches(bmc).length, 1);
});
