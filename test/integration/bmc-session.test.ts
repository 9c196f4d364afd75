import assert from "node:assert/strict";
import { test } from "node:test";
import { forever, hasCode, ok, openFake, redfishError, RESET, SESSIONS, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc } from "./bmc-fixture.ts";

const logins = (bmc: FakeBmc): number => bmc.log().filter((line) => line === `POST ${SESSIONS}`).length;

test("the password goes into the login alone; after that the token speaks", async () => {
  await using bmc = await startFakeBmc();
  const device = openFake(bmc);
  await device.readPower(forever());
  await device.close();
  for (const { path, headers } of bmc.requests) {
    assert.equal(headers.authorization, undefined);
    assert.equal(headers["x-auth-token"] !== undefined, path !== "/redfish/v1/" && path !== SESSIONS, path);
  }
});

test("concurrent calls share one login", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  await Promise.all([1, 2, 3, 4].map(() => device.readPower(forever())));
  assert.equal(logins(bmc), 1);
});

test("the sessions are where SessionService is, if the root has no link to them", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  bmc.override = ({ path }) =>
    path === "/redfish/v1/" ? ok({ SessionService: { "@odata.id": "/redfish/v1/SessionService/" } }) : undefined;
  await device.readPower(forever());
  assert.equal(logins(bmc), 1);
});

test("without sessions, or with a login that is not there, basic authentication serves", async () => {
  for (const root of [ok({}), { status: 401 }, undefined]) {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path }) => {
      if (path === "/redfish/v1/") return root;
      return path === SESSIONS ? { status: 404 } : undefined;
    };
    await using device = openFake(bmc);
    assert.equal((await device.readPower(forever())).state, "On");
    assert.match(bmc.requests.at(-1)?.headers.authorization ?? "", /^Basic /);
  }
});

test("a wrong password is AuthFailed, and asked of the BMC once however often we are called", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { password: "wrong" });
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
  await assert.rejects(device.forceOff(forever()), hasCode("AuthFailed"));
  await assert.rejects(device.on(forever()), hasCode("AuthFailed"));
  assert.equal(logins(bmc), 1);
  assert.deepEqual(bmc.log(), ["GET /redfish/v1/", `POST ${SESSIONS}`]);
});

test("a wrong password is AuthFailed with basic authentication too, and tried once", async () => {
  await using bmc = await startFakeBmc();
  bmc.override = ({ path }) => (path === "/redfish/v1/" ? ok({}) : undefined);
  await using device = openFake(bmc, { password: "wrong", path: SYSTEM });
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
  assert.equal(bmc.log().filter((line) => line === `GET ${SYSTEM}`).length, 1);
});

test("a BMC that repeats what it was sent does not get the password into the error", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  bmc.override = ({ path, body }) =>
    path === SESSIONS
      ? redfishError(400, `iLO.2.14.UnauthorizedLoginAttempt`, `bad login ${String(body["Password"])}`)
      : undefined;
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
});

test("a full session table falls back to basic authentication, and is Busy where that is refused", async () => {
  await using bmc = await startFakeBmc();
  const full = redfishError(503, "Base.1.18.SessionLimitExceeded");
  bmc.override = ({ path }) => (path === SESSIONS ? full : undefined);
  {
    await using device = openFake(bmc);
    assert.equal((await device.readPower(forever())).state, "On");
  }
  bmc.override = ({ path }) => (path === SESSIONS ? full : path === "/redfish/v1/" ? undefined : { status: 401 });
  await using device = openFake(bmc, { path: SYSTEM });
  await assert.rejects(device.readPower(forever()), hasCode("Busy", /no session/));
});

test("an expired session is replaced once, for reads and for orders", async () => {
  await using bmc = await startFakeBmc();
  const device = openFake(bmc);
  await device.readPower(forever());
  bmc.sessions.clear();
  assert.equal((await device.readPower(forever())).state, "On");
  bmc.sessions.clear();
  await device.forceOff(forever());
  assert.equal(logins(bmc), 3);
  assert.equal(bmc.system["PowerState"], "Off");
  await device.close();
  assert.equal(bmc.sessions.size, 0);
});

test("a BMC that refuses every token is AuthFailed, after two logins", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  bmc.override = ({ path }) => (path === SYSTEM ? { status: 401 } : undefined);
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
  assert.equal(logins(bmc), 2);
});

test("an account that may not do it is PrivilegeTooLow", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  for (const reply of [{ status: 403 }, redfishError(400, "Base.1.18.InsufficientPrivilege")]) {
    bmc.override = ({ path }) => (path === RESET ? reply : undefined);
    await assert.rejects(device.forceOff(forever()), hasCode("PrivilegeTooLow"));
  }
});

test("the session is ended after an abort, after failures and after a hang", async () => {
  for (const reply of ["hang", "reset", { status: 500 }] as const) {
    await using bmc = await startFakeBmc();
    const device = openFake(bmc, { path: SYSTEM });
    const aborted = new AbortController();
    bmc.override = ({ path }) => {
      if (path !== SYSTEM) return undefined;
      setImmediate(() => aborted.abort());
      return reply;
    };
    await assert.rejects(device.readPower(aborted.signal));
    assert.equal(bmc.sessions.size, 1);
    await device.close();
    assert.equal(bmc.sessions.size, 0);
  }
});

test("closing during a call ends that call, and then the session", async () => {
  await using bmc = await startFakeBmc();
  const device = openFake(bmc, { path: SYSTEM });
  const hanging = new Promise<void>((resolve) => {
    bmc.override = ({ path }) => {
      if (path !== SYSTEM) return undefined;
      resolve();
      return "hang";
    };
  });
  const rejected = assert.rejects(device.readPower(forever()), hasCode("Aborted"));
  await hanging;
  await device.close();
  await rejected;
  assert.equal(bmc.sessions.size, 0);
});

test("closing during the login waits for its session, and ends it", async () => {
  await using bmc = await startFakeBmc();
  const device = openFake(bmc, { path: SYSTEM });
  let closing: Promise<void> | undefined;
  bmc.override = ({ path }) => {
    if (path === SESSIONS) closing = device.close();
    return undefined;
  };
  await assert.rejects(device.forceOff(forever()), hasCode("Aborted"));
  await closing;
  assert.equal(bmc.sessions.size, 0);
  assert.equal(bmc.system["PowerState"], "On");
});

test("a closed driver sends nothing, and closing is quiet whatever the BMC does", async () => {
  await using bmc = await startFakeBmc();
  for (const reply of ["hang", "reset", { status: 500 }] as const) {
    const device = openFake(bmc, { callTimeoutMs: 300 });
    bmc.override = ({ method }) => (method === "DELETE" ? reply : undefined);
    await device.readPower(forever());
    await device.close();
    await device.close();
    const sent = bmc.requests.length;
    await assert.rejects(device.forceOff(forever()), hasCode("Aborted"));
    assert.equal(bmc.requests.length, sent);
  }
  const unused = openFake(bmc);
  const sent = bmc.requests.length;
  await unused.close();
  await assert.rejects(unused.forceOff(forever()), hasCode("Aborted"));
  assert.equal(bmc.requests.length, sent);
});
