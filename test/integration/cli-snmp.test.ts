import assert from "node:assert/strict";
import { test } from "node:test";
import { cli } from "./cli-fixture.ts";
import { COMMUNITY, PASSWORD, PRIV_PASSWORD, SERIAL, startSnmpWorld, USER } from "./snmp-fixture.ts";

// `ironfence probe` and `ironfence power` with the address of an outlet.

const env = {
  IRONFENCE_BMC_USERNAME: USER,
  IRONFENCE_BMC_PASSWORD: PASSWORD,
  IRONFENCE_SNMP_PRIV_PASSWORD: PRIV_PASSWORD,
};

test("ironfence probe shows outlet, PDU and power, and that an outlet has no identity", async () => {
  await using world = await startSnmpWorld();
  const { out, err, code } = await cli(["probe", `${world.mock.address}/1`], { env });
  assert.equal(code, 0, out + err);
  assert.match(out, /SNMP at UDP port \d+/);
  assert.match(out, new RegExp(`outlet 1 of ${SERIAL}`));
  assert.match(out, /On \(the BMC reports: on\)/);
  assert.ok(world.mock.requests.every(({ step }) => step !== "set"));
  assert.ok(!out.includes(PASSWORD) && !out.includes(PRIV_PASSWORD));
});

test("ironfence power switches an outlet off and on by its address", async () => {
  await using world = await startSnmpWorld();
  const off = await cli(["power", "off", `${world.mock.address}/1`, "--yes"], { env });
  assert.equal(off.code, 0, off.out + off.err);
  assert.equal(world.rack.host("one").mains, false);
  const on = await cli(["power", "on", `${world.mock.address}/1`, "--yes"], { env });
  assert.equal(on.code, 0, on.out + on.err);
  assert.equal(world.rack.host("one").mains, true);
});

test("ironfence power takes a community as the password only with v2c, and other names not at all", async () => {
  await using world = await startSnmpWorld();
  const address = `${world.mock.address}/1`;
  const community = { IRONFENCE_BMC_PASSWORD: COMMUNITY };
  const { out, err, code } = await cli(["power", "status", address, "--snmp-version", "v2c"], { env: community });
  assert.equal(code, 0, out + err);
  const other = await cli(["power", "status", address, "--snmp-auth-protocol", "sha"], { env });
  assert.equal(other.code, 2);
  assert.match(other.err, /--snmp-auth-protocol: must be one of SHA-512/);
});
