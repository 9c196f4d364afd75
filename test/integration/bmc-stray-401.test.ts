import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../src/runtime/system.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { forever, hasCode, ok, openFake, redfishError, RESET, SESSIONS, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Reply, Request } from "./bmc-fixture.ts";

// HPE iLO, AMI MegaRAC and NVIDIA's GB200 and GB300 sometimes answer 401 to valid logins and sessions.

/** A clock that shortens and records waits, so that pauses between attempts do not slow the test down. */
function hastyClock(): Clock & { waits: number[] } {
  const waits: number[] = [];
  return {
    ...systemClock,
    waits,
    schedule: (delayMs, callback) => {
      if (delayMs === 1_000 || delayMs === 2_000) waits.push(delayMs);
      return systemClock.schedule(delayMs === 1_000 || delayMs === 2_000 ? delayMs / 100 : delayMs, callback);
    },
  };
}

/** Answers 401 to the next `count` requests that match. */
function stray(bmc: FakeBmc, count: number, fits: (request: Request) => boolean): void {
  let left = count;
  bmc.override = (request): Reply | undefined => {
    if (left === 0 || !fits(request)) return undefined;
    left -= 1;
    return { status: 401 };
  };
}

const isLogin = ({ method, path }: Request): boolean => method === "POST" && path === SESSIONS;
const isRead = ({ method, path }: Request): boolean => method === "GET" && path === SYSTEM;
const logins = (bmc: FakeBmc): number => bmc.requests.filter(isLogin).length;

describe("a stray 401", () => {
  it("a stray 401 to a login is not a refusal, for each of several users of a BMC", async () => {
    await using bmc = await startFakeBmc();
    const clock = hastyClock();
    const asAnother = ({ method, path, body }: Request): Reply | undefined => {
      if (method !== "POST" || path !== SESSIONS || body["UserName"] !== "another") return undefined;
      bmc.sessions.add(`${SESSIONS}/another`);
      const headers = { "x-auth-token": "token-another", location: `${SESSIONS}/another` };
      return { status: 201, headers };
    };
    bmc.override = asAnother;
    for (const username of ["fence", "another"]) {
      const earlier = openFake(bmc, { clock, username });
      await earlier.readPower(forever());
      await earlier.close();
    }
    for (const [at, username] of ["fence", "another"].entries()) {
      let left = 1;
      bmc.override = (request) => {
        if (left === 0 || !isLogin(request)) return asAnother(request);
        left -= 1;
        return { status: 401 };
      };
      await using device = openFake(bmc, { clock, username });
      assert.equal((await device.readPower(forever())).state, "On");
      assert.equal(clock.waits.length, at + 1);
    }
  });

  for (const count of [1, 2]) {
    it(`a stray 401 to ${count} logins in a row is not a refusal, if the user has logged in lately`, async () => {
      await using bmc = await startFakeBmc();
      const clock = hastyClock();
      await openFake(bmc, { clock }).readPower(forever());
      stray(bmc, count, isLogin);
      await using device = openFake(bmc, { clock });
      assert.equal((await device.readPower(forever())).state, "On");
      assert.deepEqual(clock.waits, [1_000, 2_000].slice(0, count));
    });

    it(`a stray 401 to ${count} reads in a row, each in a new session, is not a refusal`, async () => {
      await using bmc = await startFakeBmc();
      stray(bmc, count, isRead);
      await using device = openFake(bmc);
      assert.equal((await device.readPower(forever())).state, "On");
      assert.equal(logins(bmc), 1, "the session was still good");
    });
  }

  it("an order that gets a stray 401 is sent again, because it was not carried out", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc);
    await device.identify(forever());
    stray(bmc, 2, ({ method, path }) => method === "POST" && path === RESET);
    await device.forceOff(forever());
    assert.equal(bmc.system["PowerState"], "Off");
  });

  it("a stray 401 to basic authentication that has worked before is not a refusal", async () => {
    await using bmc = await startFakeBmc();
    const clock = hastyClock();
    await using device = openFake(bmc, { clock });
    const noSessions = (request: Request): Reply | undefined => (isLogin(request) ? { status: 405 } : undefined);
    bmc.override = noSessions;
    await device.readPower(forever());
    let left = 2;
    bmc.override = (request) => {
      if (!isRead(request) || left === 0) return noSessions(request);
      left -= 1;
      return { status: 401 };
    };
    assert.equal((await device.readPower(forever())).state, "On");
    assert.deepEqual(clock.waits, [1_000, 2_000]);
  });
});

describe("sessions that a BMC has denied, rightly or not", () => {
  for (const denied of [1, 2, 3, 5, 9]) {
    it(`sessions that a BMC has denied are all ended after ${denied} reads that were denied, rightly or not`, async () => {
      await using bmc = await startFakeBmc();
      stray(bmc, denied, isRead);
      const device = openFake(bmc, { path: SYSTEM });
      await device.readPower(forever()).catch(() => undefined);
      await device.close();
      assert.equal(bmc.sessions.size, 0, bmc.log().join("\n"));
    });
  }

  it("sessions that a BMC has denied, rightly or not, are ended if the end itself is denied", async () => {
    await using bmc = await startFakeBmc();
    const device = openFake(bmc, { path: SYSTEM });
    await device.readPower(forever());
    stray(bmc, 2, ({ method }) => method === "DELETE");
    await device.close();
    assert.equal(bmc.sessions.size, 0);
  });

  it("sessions that a BMC has denied, rightly or not, are ended soon, not only once the device is closed: a BMC has few", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc, { path: SYSTEM });
    for (let round = 0; round < 6; round += 1) {
      stray(bmc, 3, isRead);
      assert.equal((await device.readPower(forever())).state, "On");
      await device.identify(forever());
    }
    assert.ok(bmc.sessions.size <= 2, `${bmc.sessions.size} sessions are open`);
  });
});

describe("a stray 401 in a session", () => {
  /** The BMC has no Manager, and its chassis shows no power, so only the session service shows a restart. */
  it("a stray 401 in a session is not taken for a restart: an Off is still proven", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc, { path: SYSTEM });
    await device.identify(forever());
    await device.forceOff(forever());
    let reads = 0;
    bmc.override = (request) => (isRead(request) && (reads += 1) % 2 === 1 ? { status: 401 } : undefined);
    for (let at = 0; at < 4; at += 1) assert.equal((await device.readPower(forever())).state, "Off");
    bmc.sessions.clear();
    assert.equal((await device.readPower(forever())).state, "Unknown", "a session that is lost is one");
  });

  it("a stray 401 in a session that comes after a silence of the BMC is a sign of a restart", async () => {
    await using bmc = await startFakeBmc();
    let aheadMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    await using device = openFake(bmc, { path: SYSTEM, clock });
    await device.identify(forever());
    await device.forceOff(forever());
    assert.equal((await device.readPower(forever())).state, "Off");
    aheadMs = 11_000;
    stray(bmc, 1, isRead);
    assert.equal((await device.readPower(forever())).state, "Unknown");
  });
});

describe("a full session table where basic authentication is refused", () => {
  const full = (request: Request): Reply | undefined => {
    if (isLogin(request)) return redfishError(400, "Base.1.8.SessionLimitExceeded");
    return request.headers.authorization === undefined ? undefined : { status: 401 };
  };
  const basics = (bmc: FakeBmc): number =>
    bmc.requests.filter(({ headers }) => headers.authorization !== undefined).length;

  it("a full session table where basic authentication is refused is tried by basic authentication once, by however many calls and devices", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = full;
    for (let at = 0; at < 3; at += 1) {
      await using device = openFake(bmc, { path: SYSTEM });
      for (let call = 0; call < 3; call += 1) {
        await assert.rejects(device.readPower(forever()), hasCode("Busy", /no session is free/));
      }
    }
    assert.equal(basics(bmc), 1);
  });

  it("a full session table where basic authentication is refused is left as soon as a session is free, by the same device", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = full;
    const device = openFake(bmc, { path: SYSTEM });
    await assert.rejects(device.readPower(forever()), hasCode("Busy"));
    bmc.override = () => undefined;
    assert.equal((await device.readPower(forever())).state, "On");
    assert.equal(bmc.sessions.size, 1);
    await device.close();
    assert.equal(bmc.sessions.size, 0);
  });
});

describe("a full session table where basic authentication serves", () => {
  it("a full session table where basic authentication serves is asked for a session again after a while", async () => {
    await using bmc = await startFakeBmc();
    let aheadMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    bmc.override = (request) => (isLogin(request) ? redfishError(400, "Base.1.8.SessionLimitExceeded") : undefined);
    await using device = openFake(bmc, { path: SYSTEM, clock });
    assert.equal((await device.readPower(forever())).state, "On");
    assert.equal((await device.readPower(forever())).state, "On");
    assert.equal(logins(bmc), 1);
    bmc.override = () => undefined;
    aheadMs = 61_000;
    assert.equal((await device.readPower(forever())).state, "On");
    assert.equal(bmc.sessions.size, 1);
  });
});

describe("a stray 401 to basic authentication while no session is free", () => {
  const full = (request: Request): Reply | undefined =>
    isLogin(request) ? redfishError(400, "Base.1.8.SessionLimitExceeded") : undefined;
  const isBasic = ({ headers }: Request): boolean => headers.authorization !== undefined;

  it("a stray 401 to the first basic authentication while no session is free is not a refusal, if the user has logged in lately", async () => {
    await using bmc = await startFakeBmc();
    const clock = hastyClock();
    const earlier = openFake(bmc, { clock });
    await earlier.readPower(forever());
    await earlier.close();
    let left = 1;
    bmc.override = (request) => {
      if (left === 0 || !isBasic(request)) return full(request);
      left -= 1;
      return { status: 401 };
    };
    await using device = openFake(bmc, { clock });
    assert.equal((await device.readPower(forever())).state, "On");
    assert.deepEqual(clock.waits, [1_000]);
  });

  for (const username of ["fence", "another"]) {
    it(`a stray 401 to basic authentication of ${username} while no session is free does not affect other devices`, async () => {
      await using bmc = await startFakeBmc();
      let aheadMs = 0;
      const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
      bmc.override = full;
      await using device = openFake(bmc, { clock });
      await device.forceOff(forever());
      await using other = openFake(bmc, { clock, username, password: "wrong" });
      await assert.rejects(other.readPower(forever()), hasCode("Busy"));
      aheadMs = 61_000;
      await device.on(forever());
      assert.equal(bmc.system["PowerState"], "On");
    });
  }

  it("a stray 401 to basic authentication while no session is free does not stop another user from using basic authentication", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = full;
    await using other = openFake(bmc, { username: "another", password: "wrong" });
    await assert.rejects(other.readPower(forever()), hasCode("Busy"));
    await using device = openFake(bmc);
    assert.equal((await device.readPower(forever())).state, "On");
  });
});

describe("a password that was changed on the BMC", () => {
  for (const [what, elsewhere] of [
    ["in the usual collection", SESSIONS],
    ["in another collection", "/redfish/v1/Sessions"],
  ] as const) {
    it(`a password that was changed on the BMC is tried three times at most if the sessions are ${what}`, async () => {
      await using bmc = await startFakeBmc();
      const clock = hastyClock();
      let isChanged = false;
      let refused = 0;
      bmc.override = ({ method, path, body }) => {
        if (path === "/redfish/v1/") return ok({ Links: { Sessions: { "@odata.id": elsewhere } } });
        if (method !== "POST" || path === RESET) return undefined;
        if (path === elsewhere && !isChanged && body["UserName"] === "fence") {
          bmc.sessions.add(`${elsewhere}/1`);
          return { status: 201, headers: { "x-auth-token": "token-1", location: `${elsewhere}/1` } };
        }
        refused += 1;
        return { status: 401 };
      };
      await using device = openFake(bmc, { clock, path: SYSTEM });
      assert.equal((await device.readPower(forever())).state, "On");
      await device.close();
      isChanged = true;
      refused = 0;
      for (let at = 0; at < 2; at += 1) {
        await using later = openFake(bmc, { clock, path: SYSTEM });
        await assert.rejects(later.readPower(forever()), hasCode("AuthFailed"));
      }
      assert.ok(refused <= 3, `${refused} logins were refused`);
    });
  }
});

describe("a password that was changed while basic authentication was in use", () => {
  const noSessions = (request: Request): Reply | undefined => (isLogin(request) ? { status: 405 } : undefined);
  const isBasic = ({ headers }: Request): boolean => headers.authorization !== undefined;

  it("a password that was changed while basic authentication was in use is sent three times at most, by however many devices", async () => {
    await using bmc = await startFakeBmc();
    const clock = hastyClock();
    bmc.override = noSessions;
    const devices = Array.from({ length: 5 }, () => openFake(bmc, { clock }));
    for (const device of devices) assert.equal((await device.readPower(forever())).state, "On");
    let refused = 0;
    bmc.override = (request) => {
      if (!isBasic(request)) return noSessions(request);
      refused += 1;
      return { status: 401 };
    };
    for (const device of devices) await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
    assert.equal(refused, 3);
    await Promise.all(devices.map((device) => device.close()));
  });

  it("a password that was changed while basic authentication was in use does not lock out a device whose own password works", async () => {
    await using bmc = await startFakeBmc();
    const clock = hastyClock();
    bmc.override = noSessions;
    await using device = openFake(bmc, { clock });
    await device.forceOff(forever());
    for (const password of ["wrong-1", "wrong-2", "wrong-3"]) {
      await using other = openFake(bmc, { clock, password });
      await assert.rejects(other.readPower(forever()), hasCode("AuthFailed"));
    }
    await device.on(forever());
    assert.equal(bmc.system["PowerState"], "On");
  });
});

describe("a BMC whose web server starts before Redfish", () => {
  const notYet = (): Reply => ({ status: 404 });

  for (const [what, aheadMs, code] of [
    ["a BMC without Redfish is busy if it has served Redfish before", 0, "Busy"],
    ["a BMC without Redfish is busy if it served Redfish 23 hours ago", 23 * 3_600_000, "Busy"],
    ["a BMC without Redfish is reported as such if it served Redfish 25 hours ago", 25 * 3_600_000, "Unsupported"],
  ] as const) {
    it(what, async () => {
      await using bmc = await startFakeBmc();
      let now = 0;
      const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + now };
      const earlier = openFake(bmc, { clock, path: SYSTEM });
      await earlier.readPower(forever());
      await earlier.close();
      now = aheadMs;
      bmc.override = notYet;
      await using device = openFake(bmc, { clock, path: SYSTEM });
      await assert.rejects(device.readPower(forever()), hasCode(code, /serves no Redfish/));
    });
  }

  it("a BMC whose web server starts before Redfish is not trusted with an Off yet, because it may have restarted", async () => {
    await using bmc = await startFakeBmc();
    const earlier = openFake(bmc, { path: SYSTEM });
    await earlier.forceOff(forever());
    assert.equal((await earlier.readPower(forever())).state, "Off");
    await earlier.close();
    await using device = openFake(bmc, { path: SYSTEM });
    bmc.override = notYet;
    await assert.rejects(device.readPower(forever()), hasCode("Busy"));
    bmc.override = () => undefined;
    assert.equal((await device.readPower(forever())).state, "Unknown");
  });
});

describe("stray 401s that lie far apart", () => {
  it("stray 401s that lie far apart never add up to a refusal, however many come to basic authentication", async () => {
    await using bmc = await startFakeBmc();
    const clock = hastyClock();
    await using device = openFake(bmc, { clock });
    const noSessions = (request: Request): Reply | undefined => (isLogin(request) ? { status: 405 } : undefined);
    for (let round = 0; round < 5; round += 1) {
      bmc.override = noSessions;
      assert.equal((await device.readPower(forever())).state, "On");
      let left = 1;
      bmc.override = (request) => {
        if (!isRead(request) || left === 0) return noSessions(request);
        left -= 1;
        return { status: 401 };
      };
      assert.equal((await device.readPower(forever())).state, "On", `round ${round}`);
    }
  });
});

describe("what is not a stray 401", () => {
  it("a password that has never worked is tried once", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc, { password: "wrong" });
    await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
    assert.equal(logins(bmc), 1);
  });

  it("a password that worked lately is tried three times over all drivers, and no longer taken for one that works", async () => {
    await using bmc = await startFakeBmc();
    const clock = hastyClock();
    await openFake(bmc, { clock }).readPower(forever());
    const before = logins(bmc);
    stray(bmc, Infinity, isLogin);
    const devices = [openFake(bmc, { clock }), openFake(bmc, { clock })];
    await Promise.all(devices.map((device) => assert.rejects(device.readPower(forever()), hasCode("AuthFailed"))));
    assert.equal(logins(bmc) - before, 3);
    await Promise.all(devices.map((device) => device.close()));
  });

  it("a password other than the one that worked is tried once", async () => {
    await using bmc = await startFakeBmc();
    await openFake(bmc).readPower(forever());
    const before = logins(bmc);
    await using device = openFake(bmc, { password: "wrong" });
    await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
    assert.equal(logins(bmc) - before, 1);
  });

  it("a BMC that denies every session that it gives is busy, and no password is called wrong", async () => {
    await using bmc = await startFakeBmc();
    stray(bmc, Infinity, isRead);
    await using device = openFake(bmc);
    await assert.rejects(device.readPower(forever()), hasCode("Busy", /denied 3 new sessions/));
    assert.equal(logins(bmc), 3);
    bmc.override = () => undefined;
    assert.equal((await device.readPower(forever())).state, "On");
  });
});
