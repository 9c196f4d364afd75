import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { describe, it } from "node:test";
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
import type { FakeBmc, Json, Reply, Request } from "./bmc-fixture.ts";

// Unusual logins, identities and ETags of some services.

const isLogin = ({ method, path }: Request): boolean => method === "POST" && path === SESSIONS;
const TOKEN = "token-1";

/** Answers the login with these headers and this body. The session is `SESSIONS/1`. */
function login(bmc: FakeBmc, headers: Record<string, string>, body: Json = {}): void {
  bmc.override = (request): Reply | undefined => {
    if (!isLogin(request)) return undefined;
    bmc.sessions.add(`${SESSIONS}/1`);
    return { status: 201, headers: { "X-Auth-Token": TOKEN, ...headers }, body };
  };
}

describe("a session whose Location does not serve", () => {
  for (const [what, headers, body] of [
    ["no Location, but a link in the body", {}, { "@odata.id": `${SESSIONS}/1` }],
    ["no Location, but an Id in the body", {}, { Id: "1" }],
    ["a Location that is only its id", { Location: "1" }, {}],
    ["a Location on the BMC's own network", { Location: `https://10.1.2.3${SESSIONS}/1` }, {}],
    ["an empty Location", { Location: "" }, { Id: "1" }],
    ["the Location of the collection", { Location: SESSIONS }, { Id: "1" }],
  ] as const) {
    it(`a session that comes with ${what} is used, and then ended`, async () => {
      await using bmc = await startFakeBmc();
      login(bmc, headers, body);
      const device = openFake(bmc);
      assert.equal((await device.readPower(forever())).state, "On");
      await device.close();
      assert.equal(bmc.sessions.size, 0, bmc.log().join("\n"));
    });
  }

  it("a session whose Location does not serve is ended if it was given without a token, and basic authentication serves in its place", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = (request): Reply | undefined => {
      if (!isLogin(request)) return undefined;
      bmc.sessions.add(`${SESSIONS}/1`);
      return { status: 201, headers: { Location: `${SESSIONS}/1` } };
    };
    const device = openFake(bmc);
    assert.equal((await device.readPower(forever())).state, "On");
    await device.close();
    assert.equal(bmc.sessions.size, 0, bmc.log().join("\n"));
  });

  for (const [what, headers] of [
    ["its Location points to another host", { Location: "https://elsewhere.example/login?next=1" }],
    ["no answer says where it is", {}],
    ["its Location is not that of a session", { Location: "/redfish/v1/AccountService/Accounts/3" }],
  ] as const) {
    it(`a session is used if ${what}, and nothing else is deleted at its end`, async () => {
      await using bmc = await startFakeBmc();
      login(bmc, headers);
      const device = openFake(bmc);
      await device.forceOff(forever());
      assert.equal(bmc.system["PowerState"], "Off");
      await device.close();
      assert.ok(!bmc.log().some((line) => line.startsWith("DELETE")));
    });
  }
});

describe("a slow BMC", () => {
  it("a slow BMC is left no login by a call that was aborted while it logged in", async () => {
    await using bmc = await startFakeBmc();
    bmc.hold = () => delay(300);
    const device = openFake(bmc, { callTimeoutMs: 2_000, path: SYSTEM });
    const caller = new AbortController();
    const reading = device.readPower(caller.signal);
    setTimeout(() => caller.abort(new Error("enough")), 350);
    await assert.rejects(reading, hasCode("Aborted"));
    await device.close();
    assert.equal(bmc.sessions.size, 0, bmc.log().join("\n"));
  });

  it("a slow BMC is given the time to end the session, though an answer takes it more than five seconds", async () => {
    await using bmc = await startFakeBmc();
    const device = openFake(bmc, { path: SYSTEM, callTimeoutMs: 15_000 });
    await device.identify(forever());
    bmc.hold = () => delay(5_200);
    const unsaid = await Promise.race([device.close().then(() => "ended"), delay(10_000, "hangs", { ref: false })]);
    assert.equal(unsaid, "ended");
    assert.deepEqual(bmc.answered.at(-1), `DELETE ${SESSIONS}/1`);
  });

  it("a slow BMC gets no login if the time is too short to finish it", async () => {
    await using bmc = await startFakeBmc();
    bmc.hold = () => delay(300);
    const elsewhere = "/redfish/v1/Sessions";
    bmc.override = (request) => {
      if (isLogin(request)) return { status: 404 };
      if (request.path !== "/redfish/v1/") return undefined;
      return ok({ Links: { Sessions: { "@odata.id": elsewhere } } });
    };
    const device = openFake(bmc, { callTimeoutMs: 1_000, path: SYSTEM });
    await assert.rejects(device.readPower(forever()), hasCode("Timeout"));
    await device.close();
    assert.ok(!bmc.log().includes(`POST ${elsewhere}`), bmc.log().join("\n"));
  });
});

describe("a login that says what is wrong", () => {
  it("a login that says what is wrong is made by basic authentication if the BMC has sessions disabled", async () => {
    for (const status of [403, 404, 405, 500, 503]) {
      await using bmc = await startFakeBmc();
      bmc.override = (request) => (isLogin(request) ? redfishError(status, "Base.1.8.ServiceDisabled") : undefined);
      await using device = openFake(bmc);
      assert.equal((await device.readPower(forever())).state, "On", String(status));
    }
  });

  for (const [id, words] of [
    ["PasswordChangeRequired", /must change its password/],
    ["InsufficientPrivilege", /may not log in by Redfish/],
  ] as const) {
    for (const status of [401, 403]) {
      it(`a login that is refused with ${status} ${id} fails as PrivilegeTooLow, and does not delay the next login`, async () => {
        await using bmc = await startFakeBmc();
        bmc.override = (request) => (isLogin(request) ? redfishError(status, `Base.1.8.${id}`) : undefined);
        await using device = openFake(bmc);
        await assert.rejects(device.readPower(forever()), hasCode("PrivilegeTooLow", words));
        bmc.override = () => undefined;
        await using second = openFake(bmc);
        assert.equal((await second.readPower(forever())).state, "On");
      });
    }
  }

  for (const [status, id] of [
    [403, "PasswordChangeRequired"],
    [401, "PasswordChangeRequired"],
    [401, "InsufficientPrivilege"],
  ] as const) {
    it(`a session that may do nothing (${status} ${id}) fails as PrivilegeTooLow, and is ended`, async () => {
      await using bmc = await startFakeBmc();
      bmc.override = ({ path }) => (path === SYSTEM ? redfishError(status, `Base.1.8.${id}`) : undefined);
      const device = openFake(bmc, { path: SYSTEM });
      await assert.rejects(device.readPower(forever()), hasCode("PrivilegeTooLow"));
      bmc.override = () => undefined;
      assert.equal((await device.readPower(forever())).state, "On", "nothing is remembered as refused");
      await device.close();
      assert.equal(bmc.sessions.size, 0);
    });
  }
});

describe("a plain HTTP address that redirects", () => {
  it("a plain HTTP address that redirects is refused before a password goes out, with the address to give", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path }) => ({ status: 301, headers: { location: `https://bmc.example${path}` } });
    await using device = openFake(bmc);
    await assert.rejects(
      device.identify(forever()),
      hasCode("Unsupported", /redirects to https:\/\/bmc\.example: use that/),
    );
    assert.ok(!JSON.stringify(bmc.requests).includes(PASSWORD));
    assert.ok(bmc.requests.every(({ headers }) => headers.authorization === undefined));
  });
});

describe("a service that serves nothing over plain HTTP", () => {
  for (const status of [301, 403, 426]) {
    it(`a service that answers plain HTTP with ${status}, without the address of HTTPS, is sent no password`, async () => {
      await using bmc = await startFakeBmc();
      bmc.override = () => ({ status });
      await using device = openFake(bmc);
      await assert.rejects(device.identify(forever()), hasCode("Unsupported", /use its https address/));
      assert.ok(!JSON.stringify(bmc.requests).includes(PASSWORD));
      assert.ok(bmc.requests.every(({ headers }) => headers.authorization === undefined));
    });
  }
});

describe("an identity that grows after a power-on", () => {
  it("an identity that grows after a power-on is the same host's: the serial number comes after POST, and a new login", async () => {
    await using bmc = await startFakeBmc();
    bmc.system["SerialNumber"] = null;
    await using device = openFake(bmc);
    await device.identify(forever());
    bmc.system["SerialNumber"] = "SN-0001";
    assert.equal((await device.readPower(forever())).state, "On");
    bmc.sessions.clear();
    await device.forceOff(forever());
    assert.equal(bmc.system["PowerState"], "Off");
  });

  it("an identity that grows after a power-on belongs to another host if no part of it was known before", async () => {
    await using bmc = await startFakeBmc();
    Object.assign(bmc.system, { UUID: null, SerialNumber: "To be filled by O.E.M." });
    await using device = openFake(bmc);
    await device.identify(forever());
    bmc.system["SerialNumber"] = "SN-0001";
    bmc.sessions.clear();
    await assert.rejects(device.forceOff(forever()), hasCode("Refused", /another host answers/));
  });
});

describe("a reading of another host", () => {
  for (const [what, change] of [
    ["another serial number", { SerialNumber: "SN-0002" }],
    ["another UUID", { UUID: "0b3f6b7e-1c1d-4f62-9d5a-2f6f0c5b9a11" }],
    ["another serial number, and no UUID", { SerialNumber: "SN-0002", UUID: null }],
  ] as const) {
    it(`a reading does not count as Off if the BMC now reports ${what}`, async () => {
      await using bmc = await startFakeBmc();
      await using device = openFake(bmc);
      await device.identify(forever());
      await device.forceOff(forever());
      Object.assign(bmc.system, change);
      const reading = await device.readPower(forever());
      assert.equal(reading.state, "Unknown");
      assert.match(reading.raw, /another host answers/);
    });
  }
});

describe("an identity that changes while the host is off", () => {
  for (const [what, change] of [
    ["the UUID vanishes", { UUID: null }],
    ["the UUID becomes all zeros", { UUID: "00000000-0000-0000-0000-000000000000" }],
    ["the UUID becomes the default of firmware that has none", { UUID: "03000200-0400-0500-0006-000700080009" }],
    ["the UUID becomes that default in the other byte order", { UUID: "00020003-0004-0005-0006-000700080009" }],
    ["the UUID changes to the other byte order", { UUID: "44454c4c-4200-1035-8051-b4c04f4e3732" }],
    ["the serial number vanishes", { SerialNumber: "" }],
    ["the serial number becomes a placeholder", { SerialNumber: "Not Specified" }],
  ] as const) {
    it(`an identity stays that of the host if ${what} while the host is off, also after a new login`, async () => {
      await using bmc = await startFakeBmc();
      await using device = openFake(bmc);
      await device.identify(forever());
      await device.forceOff(forever());
      Object.assign(bmc.system, change);
      assert.equal((await device.readPower(forever())).state, "Off");
      bmc.sessions.clear();
      await device.forceOff(forever());
      bmc.sessions.clear();
      await device.on(forever());
      assert.equal(bmc.system["PowerState"], "On");
    });
  }

  it("a host whose whole identity changes while it is off may be powered on, but not off", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc);
    await device.identify(forever());
    await device.forceOff(forever());
    Object.assign(bmc.system, { UUID: null, SerialNumber: null });
    bmc.sessions.clear();
    await assert.rejects(device.forceOff(forever()), hasCode("Refused", /no longer reports its identity/));
    await device.on(forever());
    assert.equal(bmc.system["PowerState"], "On");
  });

  it("an identity that changes while the host is off is another host's if a value differs", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc);
    await device.identify(forever());
    await device.forceOff(forever());
    const orders = bmc.log().filter((line) => line === `POST ${RESET}`).length;
    bmc.system["SerialNumber"] = "SN-0002";
    bmc.sessions.clear();
    await assert.rejects(device.on(forever()), hasCode("Refused", /another host answers/));
    // The first attempt used the old session and had no effect.
    assert.ok(bmc.log().filter((line) => line === `POST ${RESET}`).length <= orders + 1);
    assert.equal(bmc.system["PowerState"], "Off");
  });
});

describe("a tag in quotes too many, or too few", () => {
  for (const [given, wanted] of [
    ['""a1""', '"a1"'],
    ['"\\"a1\\""', '"a1"'],
    ["a1", '"a1"'],
    ['W/""a1""', '"a1"'],
    ['""a1""', '""a1""'],
  ] as const) {
    it(`an ETag ${given} with too many or too few quotes is sent as ${wanted} if the service compares with that`, async () => {
      await using bmc = await startFakeBmc();
      bmc.override = ({ method, path, headers }) => {
        if (path !== SYSTEM) return undefined;
        if (method === "GET") return ok({ ...bmc.system, "@odata.etag": given });
        return headers["if-match"] === wanted ? undefined : { status: 412 };
      };
      await using device = openFake(bmc);
      await device.setBootOverride("NetworkOnce", forever());
      assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
    });
  }
});
