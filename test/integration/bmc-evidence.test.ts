import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BmcEvidence } from "../../src/bmc/evidence/model.ts";
import { EVIDENCE_BYTES_MAX, EVIDENCE_REQUESTS_MAX } from "../../src/bmc/gate/limits/reading-budget.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { toTime } from "../../src/runtime/time.ts";
import { CHASSIS, forever, ok, openFake, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Json, Reply } from "./bmc-fixture.ts";

// Reads logs of BMCs over real sockets, in the forms of different services.

const MANAGER = "/redfish/v1/Managers/1";
const NEWEST = "Uncorrectable ECC at DIMM B2";

/** Serves resources by path. A resource may be a function of the query. */
function serve(bmc: FakeBmc, resources: Readonly<Record<string, Json | ((query: URLSearchParams) => Reply)>>): void {
  Object.assign(bmc.system, { LogServices: { "@odata.id": `${SYSTEM}/LogServices` } });
  Object.assign(bmc.system["Links"] as Json, { ManagedBy: [{ "@odata.id": MANAGER }] });
  bmc.override = ({ method, path }) => {
    const { pathname, searchParams } = new URL(path, bmc.url);
    const found = resources[pathname];
    if (method !== "GET" || found === undefined) return undefined;
    return typeof found === "function" ? found(searchParams) : ok(found);
  };
}

function entry(number: number, message = `Fan ${number} is present`): Json {
  return {
    "@odata.id": `${SYSTEM}/LogServices/SEL/Entries/${number}`,
    Id: String(number),
    Created: toTime(Date.UTC(2026, 10, 23) + number * 1_000),
    Severity: "OK",
    Message: message,
  };
}

/** `count` entries, oldest first. The last one is the cause. */
function entries(count: number): Json[] {
  return Array.from({ length: count }, (_, at) => entry(at + 1, at + 1 === count ? NEWEST : undefined));
}

const SEL = `${SYSTEM}/LogServices/SEL`;
const LOGS: Record<string, Json> = {
  [`${SYSTEM}/LogServices`]: { Members: [{ "@odata.id": SEL }] },
  [SEL]: { Id: "SEL", Entries: { "@odata.id": `${SEL}/Entries` } },
  [MANAGER]: { DateTime: "2026-11-23T00:10:00Z", DateTimeLocalOffset: "+00:00" },
};

async function evidenceOf(device: PowerDriver): Promise<BmcEvidence> {
  await device.identify(forever());
  assert.ok(device.readEvidence !== undefined);
  return device.readEvidence(forever());
}

function page(all: readonly Json[], query: URLSearchParams): Json {
  const skip = Number(query.get("$skip") ?? 0);
  const top = Number(query.get("$top") ?? all.length);
  return { "Members@odata.count": all.length, Members: all.slice(skip, skip + top) };
}

type Shape = (all: readonly Json[], query: URLSearchParams) => Reply;

const SHAPES: Readonly<Record<string, Shape>> = {
  "the oldest first, paged by $top and $skip": (all, query) => ok(page(all, query)),
  "the newest first": (all, query) => ok(page(all.toReversed(), query)),
  "the oldest first, and refuses query parameters": (all, query) =>
    query.size > 0 ? { status: 501 } : ok({ "Members@odata.count": all.length, Members: [...all] }),
  "the oldest first, and ignores query parameters": (all) =>
    ok({ "Members@odata.count": all.length, Members: [...all] }),
  "the oldest first, in pages that link to the next": (all, query) => {
    const at = Number(query.get("page") ?? 0);
    const next = (at + 1) * 20 < all.length ? { "Members@odata.nextLink": `${SEL}/Entries?page=${at + 1}` } : {};
    return ok({ Members: all.slice(at * 20, (at + 1) * 20), ...next });
  },
};

/** Logs of which the first answer is longer than what may be read. */
const LONG_SHAPES: Readonly<Record<string, Shape>> = {
  "in one answer that begins with their number": (all) => ok({ "Members@odata.count": all.length, Members: [...all] }),
  "in one answer that ends with their number, with $skip alone": (all, query) =>
    ok({ Members: all.slice(Number(query.get("$skip") ?? 0)), "Members@odata.count": all.length }),
  "in one answer, and refuses query parameters": (all, query) =>
    query.size > 0 ? { status: 400 } : ok({ "Members@odata.count": all.length, Members: [...all] }),
  "in pages that link to the next, with their number": (all, query) => {
    const at = Number(query.get("page") ?? 0);
    const next = { "Members@odata.nextLink": `${SEL}/Entries?page=${at + 1}` };
    return ok({ "Members@odata.count": all.length, Members: all.slice(at * 20, (at + 1) * 20), ...next });
  },
};

describe("the log of a BMC over Redfish", () => {
  for (const [shape, reply] of Object.entries(SHAPES)) {
    for (const count of [1, 15, 60]) {
      it(`the log of a BMC over Redfish that has ${count} entries, ${shape}, is read to its newest entry`, async () => {
        await using bmc = await startFakeBmc();
        const all = entries(count);
        serve(bmc, { ...LOGS, [`${SEL}/Entries`]: (query) => reply(all, query) });
        await using device = openFake(bmc);
        const found = await evidenceOf(device);
        assert.ok(
          found.entries.some(({ text, topic, rank }) => text === NEWEST && topic === "Memory" && rank === 3),
          JSON.stringify(found),
        );
      });
    }
  }

  for (const [shape, reply] of Object.entries(LONG_SHAPES)) {
    it(`the log of a BMC over Redfish with 10,000 entries, ${shape}, is read to its newest entry`, async () => {
      await using bmc = await startFakeBmc();
      const all = entries(10_000);
      const single = all.slice(-20).map((body): [string, Json] => [String(body["@odata.id"]), body]);
      serve(bmc, { ...LOGS, ...Object.fromEntries(single), [`${SEL}/Entries`]: (query) => reply(all, query) });
      await using device = openFake(bmc);
      const found = await evidenceOf(device);
      assert.ok(
        found.entries.some(({ text }) => text === NEWEST),
        JSON.stringify(found),
      );
      assert.equal(found.incomplete, undefined);
    });
  }

  it("the log of a BMC over Redfish with few long entries is read to its newest entry, and no entry is requested that does not exist", async () => {
    await using bmc = await startFakeBmc();
    const all = entries(5).map((body, at) => (at < 4 ? { ...body, Message: "long ".repeat(2_000) } : body));
    const single = all.map((body): [string, Json] => [String(body["@odata.id"]), body]);
    const reply = (query: URLSearchParams): Reply =>
      query.size > 0 ? { status: 400 } : ok({ "Members@odata.count": all.length, Members: [...all] });
    serve(bmc, { ...LOGS, ...Object.fromEntries(single), [`${SEL}/Entries`]: reply });
    await using device = openFake(bmc);
    const found = await evidenceOf(device);
    assert.ok(
      found.entries.some(({ text }) => text === NEWEST),
      JSON.stringify(found),
    );
    const asked = bmc.requests.flatMap(({ path }) => /\/Entries\/(.+)$/.exec(path)?.[1] ?? []);
    assert.deepEqual(asked.toSorted(), ["4", "5"]);
  });

  it("the log of a BMC over Redfish whose newest entries cannot be found is reported as not read to its end", async () => {
    await using bmc = await startFakeBmc();
    const all = entries(10_000).map(({ "@odata.id": _id, ...body }) => body);
    serve(bmc, { ...LOGS, [`${SEL}/Entries`]: () => ok({ Members: all, "Members@odata.count": all.length }) });
    await using device = openFake(bmc);
    assert.match((await evidenceOf(device)).incomplete ?? "", /newest entries of log SEL were not reached/);
  });

  it("the log of a BMC over Redfish is read if the clock of the BMC shows no usable time", async () => {
    await using bmc = await startFakeBmc();
    const shapes = { ...LOGS, [MANAGER]: { DateTime: 1e20 } };
    serve(bmc, { ...shapes, [`${SEL}/Entries`]: { Members: entries(2) } });
    bmc.system["LastResetTime"] = "9999-12-31T23:59:59Z";
    await using device = openFake(bmc);
    const found = await evidenceOf(device);
    assert.ok(found.entries.some(({ text }) => text === NEWEST));
    assert.ok(Math.abs(found.clockAheadMs ?? 0) < 86_400_000, JSON.stringify(found));
    assert.equal(found.lastResetMs, undefined);
  });

  it("the log of a BMC over Redfish is read without a resource whose reference is too long", async () => {
    await using bmc = await startFakeBmc();
    serve(bmc, { ...LOGS, [`${SEL}/Entries`]: { Members: entries(2) } });
    Object.assign(bmc.system["Links"] as Json, { Chassis: [{ "@odata.id": `/a${"/".repeat(20_000)}x` }] });
    await using device = openFake(bmc);
    const found = await evidenceOf(device);
    assert.ok(found.entries.some(({ text }) => text === NEWEST));
    assert.match(found.incomplete ?? "", /not a usable reference/);
    assert.ok(bmc.requests.every(({ path }) => path.length < 2_048));
  });

  for (const password of ["P@ss$w0rd|{x}", "Tr0ub4dor&3-correct-horse"]) {
    it(`the log of a BMC over Redfish shows no part of the password ${password}, wherever the BMC repeats it`, async () => {
      await using bmc = await startFakeBmc();
      const session = "/redfish/v1/SessionService/Sessions/1";
      const echoes = [`POST {"UserName":"fence","Password":"${password}"}`, `${"x".repeat(150)}${password}`];
      serve(bmc, {
        ...LOGS,
        [SEL]: { Id: `SEL ${password}`, Entries: { "@odata.id": `${SEL}/Entries` } },
        [`${SEL}/Entries`]: { Members: echoes.map((message, at) => entry(at + 1, message)) },
        [`${CHASSIS}/Thermal`]: {
          Temperatures: [{ Name: `CPU ${password}`, ReadingCelsius: 99, UpperThresholdFatal: 90 }],
        },
      });
      const { override } = bmc;
      bmc.override = (request) => {
        if (request.method !== "POST") return override?.(request);
        bmc.sessions.add(session);
        return { status: 201, headers: { "X-Auth-Token": "token-1", Location: session }, body: {} };
      };
      Object.assign(bmc.system["Links"] as Json, { Chassis: [{ "@odata.id": CHASSIS }] });
      await using device = openFake(bmc, { username: "fence", password });
      const found = await evidenceOf(device);
      const said = JSON.stringify(found);
      assert.equal(found.entries.length, 2);
      assert.equal(found.sensors.length, 1);
      assert.match(said, /secret/);
      for (let at = 0; at + 4 <= password.length; at += 1) assert.ok(!said.includes(password.slice(at, at + 4)), said);
      assert.ok(!said.includes("w0rd"), said);
    });
  }

  it("the log of a BMC over Redfish is read if its entries are links", async () => {
    await using bmc = await startFakeBmc();
    const all = entries(30);
    const each = Object.fromEntries(all.map((body) => [body["@odata.id"] as string, body]));
    const links = all.map((body) => ({ "@odata.id": body["@odata.id"] }));
    serve(bmc, { ...LOGS, ...each, [`${SEL}/Entries`]: (query) => ok(page(links, query)) });
    await using device = openFake(bmc);
    const found = await evidenceOf(device);
    assert.ok(found.entries.some(({ text }) => text === NEWEST));
  });

  it("the log of a BMC over Redfish is read under the Manager, with members that are inlined in its collection", async () => {
    await using bmc = await startFakeBmc();
    const log = {
      "@odata.id": `${MANAGER}/LogServices/Sel`,
      Id: "Sel",
      Entries: { "@odata.id": `${MANAGER}/Logs/Sel` },
    };
    serve(bmc, {
      [MANAGER]: { DateTime: "2026-11-23T00:10:00Z", LogServices: { "@odata.id": `${MANAGER}/LogServices` } },
      [`${MANAGER}/LogServices`]: { Members: [{ "@odata.id": `${MANAGER}/LogServices/AuditLog` }, log] },
      [`${MANAGER}/Logs/Sel`]: { Members: entries(3).toReversed() },
    });
    await using device = openFake(bmc);
    const found = await evidenceOf(device);
    assert.ok(found.entries.some(({ text, log }) => text === NEWEST && log === "Sel"));
    assert.ok(!bmc.log().some((request) => request.includes("AuditLog")));
  });

  it("the log of a BMC over Redfish that is larger than what may be read yields what was read, and says so", async () => {
    await using bmc = await startFakeBmc();
    const all = entries(3_000).toReversed();
    serve(bmc, { ...LOGS, [`${SEL}/Entries`]: () => ok({ Members: all }) });
    await using device = openFake(bmc);
    const found = await evidenceOf(device);
    assert.ok(found.entries.some(({ text }) => text === NEWEST));
  });

  it("the log of a BMC over Redfish is read with its clock, which may be wrong", async () => {
    await using bmc = await startFakeBmc();
    const ahead = 3_600_000;
    serve(bmc, {
      ...LOGS,
      [MANAGER]: { DateTime: toTime(Date.now() + ahead) },
      [`${SEL}/Entries`]: { Members: entries(2) },
    });
    await using device = openFake(bmc);
    const { clockAheadMs = 0 } = await evidenceOf(device);
    assert.ok(Math.abs(clockAheadMs - ahead) < 60_000, `${clockAheadMs}`);
  });

  it("the log of a BMC over Redfish is left out if the BMC answers nonsense, and no request leaves its origin", async () => {
    const nonsense: readonly Reply[] = [
      { status: 200, body: "<html>" },
      { status: 200, body: '{"Members":[[],{"@odata.id":"http://192.0.2.1/x"},7,null,{"Message":{}}]}' },
      { status: 500 },
      { status: 302, headers: { location: "http://192.0.2.1/" } },
      "reset",
    ];
    for (const reply of nonsense) {
      await using bmc = await startFakeBmc();
      serve(bmc, { ...LOGS, [`${SEL}/Entries`]: () => reply });
      await using device = openFake(bmc);
      const found = await evidenceOf(device);
      assert.deepEqual(found.entries, []);
      assert.equal((await device.readPower(forever())).state, "On");
    }
  });

  it("the log of a BMC over Redfish is read under the Chassis if it is nowhere else and the Chassis holds this host alone", async () => {
    const logs = `${CHASSIS}/LogServices`;
    for (const systems of [[SYSTEM], [SYSTEM, "/redfish/v1/Systems/2"]]) {
      await using bmc = await startFakeBmc();
      serve(bmc, {
        ...LOGS,
        [`${SYSTEM}/LogServices`]: { Members: [] },
        [CHASSIS]: {
          "@odata.id": CHASSIS,
          LogServices: { "@odata.id": logs },
          Links: { ComputerSystems: systems.map((path) => ({ "@odata.id": path })) },
        },
        [logs]: { Members: [{ "@odata.id": `${logs}/SEL` }] },
        [`${logs}/SEL`]: { Id: "SEL", Entries: { "@odata.id": `${logs}/SEL/Entries` } },
        [`${logs}/SEL/Entries`]: { Members: entries(3) },
      });
      await using device = openFake(bmc);
      const found = await evidenceOf(device);
      assert.equal(
        found.entries.some(({ text }) => text === NEWEST),
        systems.length === 1,
      );
    }
  });

  it("the log of a BMC over Redfish is read although one entry of it is longer than all that may be read", async () => {
    const long = entry(1, `Uncorrectable ECC ${"A".repeat(50_000)}`);
    const all = [long, ...entries(4).slice(1)];
    for (const hasCount of [true, false]) {
      await using bmc = await startFakeBmc();
      serve(bmc, {
        ...LOGS,
        [`${SEL}/Entries`]: (query) => {
          const { Members, ...count } = page(all, query);
          return ok({ ...(hasCount && count), Members });
        },
      });
      await using device = openFake(bmc);
      const found = await evidenceOf(device);
      assert.ok(
        found.entries.some(({ text }) => text === NEWEST),
        JSON.stringify(found),
      );
    }
  });

  it("the log of a BMC over Redfish that is the most useful is read before others are looked at, for a BMC that is slow", async () => {
    await using bmc = await startFakeBmc();
    const lclog = `${SYSTEM}/LogServices/Lclog`;
    serve(bmc, {
      ...LOGS,
      [`${SYSTEM}/LogServices`]: { Members: [{ "@odata.id": lclog }, { "@odata.id": SEL }] },
      [`${SEL}/Entries`]: { Members: entries(3) },
      [lclog]: { Id: "Lclog", Entries: { "@odata.id": `${lclog}/Entries` } },
      [`${lclog}/Entries`]: { Members: [] },
    });
    await using device = openFake(bmc);
    await evidenceOf(device);
    const paths = bmc.requests.map(({ path }) => path.replace(/\?.*/, ""));
    assert.ok(paths.includes(`${SEL}/Entries`));
    assert.ok(paths.indexOf(`${SEL}/Entries`) < paths.indexOf(lclog), paths.join("\n"));
  });

  it("the log of a BMC over Redfish costs a bounded number of requests and bytes, however much there is", async () => {
    await using bmc = await startFakeBmc();
    let bytes = 0;
    const count = (body: Json): Reply => {
      bytes += JSON.stringify(body).length;
      return ok(body);
    };
    const services = Array.from({ length: 40 }, (_, at) => ({ "@odata.id": `${SYSTEM}/LogServices/Event${at}` }));
    const logs = Object.fromEntries(
      services.flatMap(({ "@odata.id": path }) => [
        [path, () => count({ Entries: { "@odata.id": `${path}/Entries` } })],
        [
          `${path}/Entries`,
          (query: URLSearchParams) =>
            count({
              Members: entries(20),
              "Members@odata.nextLink": `${path}/Entries?page=${Number(query.get("page") ?? 0) + 1}`,
            }),
        ],
      ]),
    );
    serve(bmc, { ...LOGS, [`${SYSTEM}/LogServices`]: { Members: services }, ...logs });
    await using device = openFake(bmc);
    await device.identify(forever());
    const before = bmc.requests.length;
    await device.readEvidence?.(forever());
    const requests = bmc.requests.length - before;
    assert.ok(requests <= EVIDENCE_REQUESTS_MAX, `${requests} requests`);
    assert.ok(bytes <= EVIDENCE_BYTES_MAX + 30_000, `${bytes} bytes`);
  });
});

describe("sensors over Redfish", () => {
  it("sensors over Redfish are reported if they are above a limit, and no fan is for standing still", async () => {
    await using bmc = await startFakeBmc();
    serve(bmc, {
      ...LOGS,
      [`${CHASSIS}/Thermal`]: {
        Temperatures: [
          { Name: "CPU1 Temp", ReadingCelsius: 104, UpperThresholdCritical: 100, Status: { State: "Enabled" } },
          { Name: "Inlet", ReadingCelsius: 22, UpperThresholdCritical: 42 },
        ],
        Fans: [{ Name: "Fan 1", Reading: 0, LowerThresholdCritical: 600, Status: { Health: "OK" } }],
      },
      [`${CHASSIS}/Power`]: { PowerSupplies: [{ Name: "PSU 2", Status: { State: "Enabled", Health: "Critical" } }] },
    });
    await using device = openFake(bmc);
    const { sensors } = await evidenceOf(device);
    assert.deepEqual(sensors, [
      { topic: "Thermal", text: "CPU1 Temp reads 104 °C, at or above its limit of 100 °C" },
      { topic: "PSU", text: "PSU 2 reports itself as critical" },
    ]);
  });

  it("sensors over Redfish are read from the collection of newer services", async () => {
    await using bmc = await startFakeBmc();
    const hot = {
      Name: "DIMM B2",
      ReadingType: "Temperature",
      Reading: 97,
      Thresholds: { UpperCritical: { Reading: 95 } },
    };
    serve(bmc, { ...LOGS, [`${CHASSIS}/Sensors`]: { Members: [hot, { Name: "Vcore", Reading: 1 }] } });
    await using device = openFake(bmc);
    const { sensors } = await evidenceOf(device);
    assert.deepEqual(sensors, [{ topic: "Thermal", text: "DIMM B2 reads 97 °C, at or above its limit of 95 °C" }]);
  });
});

describe("a fence while the log is read", () => {
  it("a fence while the log is read does not wait for a log that is never answered", async () => {
    await using bmc = await startFakeBmc();
    serve(bmc, { ...LOGS, [`${SEL}/Entries`]: () => "hang" });
    await using device = openFake(bmc);
    await device.identify(forever());
    const reading = device.readEvidence?.(forever());
    const asked = (): boolean => bmc.log().some((request) => request.includes("/SEL/Entries"));
    for (let turn = 0; turn < 20_000 && !asked(); turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await device.forceOff(forever());
    assert.equal((await device.readPower(forever())).state, "Off");
    assert.equal((await device.readPower(forever())).state, "Off");
    // The request for the log has no answer yet.
    const order = bmc.answered;
    assert.ok(!order.some((request) => request.includes("/SEL/Entries")));
    const found = await reading;
    assert.match(found?.incomplete ?? "", /within|in 5 s/);
    assert.equal(bmc.sessions.size, 1, "no session of its own");
  });

  it("a fence while the log is read sends no request for a log while a call is under way", async () => {
    await using bmc = await startFakeBmc();
    serve(bmc, { ...LOGS, [`${SEL}/Entries`]: { Members: entries(5) } });
    await using device = openFake(bmc);
    await device.identify(forever());
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    bmc.hold = () => held;
    const power = device.readPower(forever());
    const reading = device.readEvidence?.(forever());
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(!bmc.log().some((request) => request.includes("Managers") || request.includes("LogServices")));
    bmc.hold = () => Promise.resolve();
    release();
    assert.equal((await power).state, "On");
    assert.ok((await reading)?.entries.some(({ text }) => text === NEWEST));
  });
});
