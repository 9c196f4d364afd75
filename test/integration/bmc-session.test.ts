import assert from "node:assert/strict";
import { test } from "node:test";
import {
  forever,
  hasCode,
  ok,
  openFake,
  PASSWORD,
  redfishError,
  RESET,
  SESSIONS,
  startFakeBmc,
  SYSTEM,
} from "./bmc-fixture.ts";
import type { FakeBmc, Json } from "./bmc-fixture.ts";

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

test("the sessions are found below the SessionService if the root has no link to them", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  bmc.override = ({ path }) =>
    path === "/redfish/v1/" ? ok({ SessionService: { "@odata.id": "/redfish/v1/SessionService/" } }) : undefined;
  await device.readPower(forever());
  assert.equal(logins(bmc), 1);
});

test("basic authentication is used if the BMC has no sessions or no login", async () => {
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

test("a wrong password is AuthFailed, and the driver tries it once, even if it is called again", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { password: "wrong" });
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
  await assert.rejects(device.forceOff(forever()), hasCode("AuthFailed"));
  await assert.rejects(device.on(forever()), hasCode("AuthFailed"));
  assert.equal(logins(bmc), 1);
  // Over plain HTTP the driver first reads the root to check for a redirect.
  assert.deepEqual(bmc.log(), ["GET /redfish/v1/", `POST ${SESSIONS}`]);
});

test("a wrong password is tried once by all drivers of a BMC together, and no more for a while", async () => {
  await using bmc = await startFakeBmc();
  const open = (password: string) => openFake(bmc, { password, path: SYSTEM });
  const wrong = [open("wrong"), open("wrong"), open("wrong")];
  await Promise.all(
    wrong.map((device) => assert.rejects(device.readPower(forever()), hasCode("AuthFailed", /refused/))),
  );
  await using late = open("wrong");
  await assert.rejects(late.readPower(forever()), hasCode("AuthFailed", /not tried again for \d+ s/));
  assert.equal(logins(bmc), 1);
  await using right = open(PASSWORD);
  assert.equal((await right.readPower(forever())).state, "On", "another password is another matter");
  await Promise.all(wrong.map((device) => device.close()));
});

test("a wrong password is not tried by the next driver if the BMC has only basic authentication", async () => {
  await using bmc = await startFakeBmc();
  bmc.override = ({ path }) =>
    path === SESSIONS ? { status: 401 } : path === "/redfish/v1/" ? ok({ Systems: {} }) : undefined;
  for (const words of [/HTTP 401/, /not tried again/]) {
    await using device = openFake(bmc, { password: "wrong", path: SYSTEM });
    await assert.rejects(device.readPower(forever()), hasCode("AuthFailed", words));
  }
  assert.equal(bmc.log().filter((line) => line === `GET ${SYSTEM}`).length, 1);
});

test("drivers of several hosts try a wrong password only once together if the BMC has only basic authentication", async () => {
  await using bmc = await startFakeBmc();
  bmc.override = ({ path }) =>
    path === SESSIONS ? { status: 401 } : path === "/redfish/v1/" ? ok({ Systems: {} }) : undefined;
  const devices = ["1", "2", "3", "4"].map((id) =>
    openFake(bmc, { password: "wrong", path: `/redfish/v1/Systems/${id}` }),
  );
  await Promise.all(devices.map((device) => assert.rejects(device.readPower(forever()), hasCode("AuthFailed"))));
  await Promise.all(devices.map((device) => device.close()));
  assert.equal(bmc.requests.filter(({ headers }) => headers.authorization !== undefined).length, 1);
});

test("a login that is elsewhere than usual is found by the service root, and the password sent there", async () => {
  const other = "/redfish/v1/Sessions";
  for (const reply of [{ status: 404 }, { status: 401 }, { status: 405 }, { status: 400 }]) {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path, method }) => {
      if (path === SESSIONS) return reply;
      if (path === "/redfish/v1/") return ok({ Links: { Sessions: { "@odata.id": other } } });
      if (path !== other || method !== "POST") return undefined;
      bmc.sessions.add(`${other}/7`);
      return { status: 201, headers: { "x-auth-token": "token-7", location: `${other}/7` } };
    };
    const device = openFake(bmc, { path: SYSTEM });
    assert.equal((await device.readPower(forever())).state, "On");
    await device.close();
    assert.equal(bmc.sessions.size, 0, `HTTP ${reply.status}`);
  }
});

test("iLO's redirect of the login to the same path with a slash is followed by its link", async () => {
  await using bmc = await startFakeBmc();
  bmc.override = ({ path, method }) => {
    if (path === SESSIONS) return { status: 308, headers: { location: `${SESSIONS}/` } };
    if (path === "/redfish/v1/") return ok({ Links: { Sessions: { "@odata.id": `${SESSIONS}/` } } });
    if (path !== `${SESSIONS}/` || method !== "POST") return undefined;
    bmc.sessions.add(`${SESSIONS}/1`);
    return { status: 201, headers: { "x-auth-token": "token-1", location: `${SESSIONS}/1` } };
  };
  const device = openFake(bmc, { path: SYSTEM });
  assert.equal((await device.readPower(forever())).state, "On");
  await device.close();
  assert.equal(bmc.sessions.size, 0);
});

test("a session that the BMC locates by a name of its own is ended on the address that we use", async () => {
  await using bmc = await startFakeBmc();
  const path = `${SESSIONS}/1`;
  bmc.override = (request) => {
    if (request.path !== SESSIONS) return undefined;
    bmc.sessions.add(path);
    const headers = { "x-auth-token": "token-1", location: `https://ilo-3.example${path}` };
    return { status: 201, headers, body: { "@odata.id": path } };
  };
  const device = openFake(bmc, { path: SYSTEM });
  await device.readPower(forever());
  await device.close();
  assert.equal(bmc.log().at(-1), `DELETE ${path}`);
  assert.equal(bmc.sessions.size, 0);
});

test("a wrong password is AuthFailed with basic authentication also, and the driver tries it once", async () => {
  await using bmc = await startFakeBmc();
  bmc.override = ({ path }) => (path === "/redfish/v1/" ? ok({}) : undefined);
  await using device = openFake(bmc, { password: "wrong", path: SYSTEM });
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
  await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
  assert.equal(bmc.log().filter((line) => line === `GET ${SYSTEM}`).length, 1);
});

test("a login that is forbidden counts as refused: the first caller tries it once, and no other one does", async () => {
  await using bmc = await startFakeBmc();
  bmc.override = ({ path }) => (path === SESSIONS ? { status: 403 } : undefined);
  for (const words of [/HTTP 403/, /not tried again/]) {
    await using device = openFake(bmc, { path: SYSTEM });
    await assert.rejects(device.readPower(forever()), hasCode("AuthFailed", words));
  }
  assert.equal(logins(bmc), 1);
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

test("a full session table falls back to basic authentication, and is Busy if that is refused", async () => {
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

test("nothing is ordered after a new login if another host answers", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  const changes = (): string[] =>
    bmc.log().filter((line) => /^(?:POST|PATCH)/.test(line) && !line.endsWith("Sessions"));
  const isRefused = hasCode("Refused", /not sent: another host answers/);
  const { UUID, SerialNumber } = bmc.system;
  for (const other of [{ UUID: "0b3f6b7e-1c1d-4f62-9d5a-2f6f0c5b9a11" }, { SerialNumber: "SN-0002" }, { UUID: null }]) {
    await device.identify(forever());
    Object.assign(bmc.system, other);
    // The order itself finds that the token of the old session is refused …
    bmc.sessions.clear();
    await assert.rejects(device.on(forever()), isRefused);
    // … or a reading before it does.
    bmc.sessions.clear();
    await device.readPower(forever());
    const before = changes().length;
    await assert.rejects(device.forceOff(forever()), isRefused);
    await assert.rejects(device.setBootOverride("NetworkOnce", forever()), isRefused);
    assert.equal(changes().length, before);
    Object.assign(bmc.system, { UUID, SerialNumber });
  }
  assert.equal(bmc.system["PowerState"], "On");
  assert.equal((bmc.system["Boot"] as Json)["BootSourceOverrideEnabled"], "Disabled");
  // The driver only reports that the identity must be checked again. The caller decides whether this is the host.
  Object.assign(bmc.system, { UUID: "0b3f6b7e-1c1d-4f62-9d5a-2f6f0c5b9a11" });
  await device.identify(forever());
  await device.forceOff(forever());
  assert.equal(bmc.system["PowerState"], "Off");
});

test("the host is identified again, once, after a new login over Redfish and before the next order", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  const looks = (): number => bmc.log().filter((line) => line === `GET ${SYSTEM}`).length;
  await device.identify(forever());
  assert.equal(looks(), 1);
  bmc.sessions.clear();
  await device.forceOff(forever());
  assert.equal(bmc.system["PowerState"], "Off");
  assert.equal(looks(), 4, "two that show that the session is lost, and one in the new one");
  await device.on(forever());
  assert.equal(looks(), 4);
  assert.equal(logins(bmc), 2);
});

test("a BMC that refuses every token is Busy, after three logins in a call: its logins were right", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  bmc.override = ({ path }) => (path === SYSTEM ? { status: 401 } : undefined);
  await assert.rejects(device.readPower(forever()), hasCode("Busy"));
  assert.equal(logins(bmc), 3);
  await assert.rejects(device.readPower(forever()), hasCode("Busy"));
  assert.equal(logins(bmc), 6);
});

test("an order by an account without the permission fails as PrivilegeTooLow", async () => {
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
    const device = openFake(bmc, { callTimeoutMs: 1_500 });
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
