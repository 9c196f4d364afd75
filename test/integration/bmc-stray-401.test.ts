import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../src/runtime/system.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { forever, hasCode, openFake, RESET, SESSIONS, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Reply, Request } from "./bmc-fixture.ts";

// HPE iLO, AMI MegaRAC and NVIDIA's GB200 and GB300 answer 401 to valid logins and sessions now and then.

/** A clock whose waits are short, so that spaced tries do not hold the test up; it records them. */
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

/** Answers 401 to the next `count` requests that fit. */
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
  for (const count of [1, 2]) {
    it(`to ${count} log-ins in a row, of a user who has logged in lately, is sat out`, async () => {
      await using bmc = await startFakeBmc();
      const clock = hastyClock();
      await openFake(bmc, { clock }).readPower(forever());
      stray(bmc, count, isLogin);
      await using device = openFake(bmc, { clock });
      assert.equal((await device.readPower(forever())).state, "On");
      assert.deepEqual(clock.waits, [1_000, 2_000].slice(0, count));
    });

    it(`to ${count} reads in a row, each in a session that was just given, is no refusal`, async () => {
      await using bmc = await startFakeBmc();
      stray(bmc, count, isRead);
      await using device = openFake(bmc);
      assert.equal((await device.readPower(forever())).state, "On");
      assert.equal(logins(bmc), count + 1);
    });
  }

  it("to an order has it sent again: it was not carried out", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc);
    await device.identify(forever());
    stray(bmc, 2, ({ method, path }) => method === "POST" && path === RESET);
    await device.forceOff(forever());
    assert.equal(bmc.system["PowerState"], "Off");
  });

  it("to basic authentication that has worked is sat out", async () => {
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

describe("stray 401s that lie far apart", () => {
  it("never add up to a refusal, however many come to basic authentication", async () => {
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

describe("what is no stray 401", () => {
  it("a login that has never worked: it is tried once", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc, { password: "wrong" });
    await assert.rejects(device.readPower(forever()), hasCode("AuthFailed"));
    assert.equal(logins(bmc), 1);
  });

  it("a login that worked lately, and has been refused three times since, over all drivers", async () => {
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

  it("another password than the one that worked: it is tried once", async () => {
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
    await assert.rejects(device.readPower(forever()), hasCode("Busy", /denies each session that it has just given, 3/));
    assert.equal(logins(bmc), 3);
    bmc.override = () => undefined;
    assert.equal((await device.readPower(forever())).state, "On");
  });
});
