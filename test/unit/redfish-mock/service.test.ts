import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createRack } from "../../../hack/rack/rack.ts";
import type { Rack } from "../../../hack/rack/rack.ts";
import type { Answer, Body } from "../../../hack/redfish-mock/answer.ts";
import type { OrderStyle, ResetTypesIn } from "../../../hack/redfish-mock/endpoint.ts";
import { RedfishService } from "../../../hack/redfish-mock/service.ts";
import { Secret } from "../../../src/runtime/secret.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const SYSTEM = "/redfish/v1/Systems/1";
const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;
const SESSIONS = "/redfish/v1/SessionService/Sessions";
const LOGIN = { UserName: "admin", Password: "open sesame" };

type Send = (
  method: string,
  path: string,
  options?: { body?: unknown; headers?: Record<string, string>; style?: OrderStyle; anonymous?: boolean },
) => Answer & { json: Body };

function setUp(options: { resetTypesIn?: ResetTypesIn; sessionsMax?: number } = {}): {
  clock: VirtualClock;
  rack: Rack;
  send: Send;
} {
  const clock = new VirtualClock();
  const random = seededRandom(1);
  const rack = createRack({ clock, random, hosts: [{ name: "a" }] });
  const service = new RedfishService({
    clock,
    random,
    bmcs: new Map([["1", rack.bmc("a")]]),
    username: LOGIN.UserName,
    password: new Secret(LOGIN.Password),
    sessionsMax: options.sessionsMax ?? 2,
    resetTypesIn: options.resetTypesIn ?? "AllowableValues",
    bootIn: "System",
  });
  const basic = `Basic ${Buffer.from(`${LOGIN.UserName}:${LOGIN.Password}`).toString("base64")}`;
  const send: Send = (method, path, { body, headers = {}, style = {}, anonymous = false } = {}) => {
    const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
    const auth = anonymous ? {} : { authorization: basic };
    const answer = service.handle({ method, path, headers: { ...auth, ...headers }, body: text }, style);
    return { ...answer, json: typeof answer.body === "object" ? answer.body : {} };
  };
  return { clock, rack, send };
}

function messageId(answer: { json: Body }): unknown {
  const { error } = answer.json as { error?: { code?: string } };
  return error?.code?.split(".").at(-1);
}

describe("the Redfish service", () => {
  it("the Redfish service shows its root, versions and OData documents to every client, and nothing else", () => {
    const { send } = setUp();
    for (const path of ["/redfish", "/redfish/v1", "/redfish/v1/", "/redfish/v1/odata", "/redfish/v1/$metadata"]) {
      assert.equal(send("GET", path, { anonymous: true }).status, 200, path);
    }
    for (const path of ["/redfish/v1/Systems", SYSTEM, SESSIONS, "/redfish/v1/nothing"]) {
      const answer = send("GET", path, { anonymous: true });
      assert.equal(answer.status, 401, path);
      assert.match(answer.headers["www-authenticate"] ?? "", /^Basic/);
    }
    assert.equal(send("GET", "/redfish/v1/nothing").status, 404);
  });

  it("the Redfish service leads from the root to each resource, and each is where it says it is", () => {
    const { send } = setUp();
    const seen = new Set<string>();
    const follow = (path: string): void => {
      if (seen.has(path)) return;
      seen.add(path);
      const answer = send("GET", path);
      assert.equal(answer.status, 200, path);
      assert.equal(answer.json["@odata.id"], path);
      assert.match(String(answer.json["@odata.type"]), /^#/);
      assert.equal(answer.json["@odata.etag"], answer.headers["etag"]);
      for (const found of JSON.stringify(answer.json).matchAll(/"@odata\.id":"([^"]+)"/g)) follow(found[1] ?? "");
    };
    follow("/redfish/v1/");
    assert.ok(seen.has(SYSTEM) && seen.has("/redfish/v1/Chassis/1") && seen.has("/redfish/v1/Managers/1"));
    assert.ok(seen.size >= 15);
  });

  it("the Redfish service shows the host as its BMC reports it", () => {
    const { rack, send } = setUp();
    const { systemUUID, serialNumber } = rack.host("a").spec;
    const before = send("GET", SYSTEM).json;
    assert.equal(before["UUID"], systemUUID);
    assert.equal(before["SerialNumber"], serialNumber);
    rack.bmc("a").pretendPower("Off", 1_000);
    assert.equal(send("GET", SYSTEM).json["PowerState"], "Off");
    assert.equal(send("GET", "/redfish/v1/Chassis/1").json["PowerState"], "Off");
  });

  it("the Redfish service resets the host through the action", async () => {
    const { clock, rack, send } = setUp();
    assert.equal(send("POST", RESET, { body: { ResetType: "ForceOff" } }).status, 204);
    assert.equal(send("GET", SYSTEM).json["PowerState"], "PoweringOff");
    assert.equal(send("POST", RESET, { body: { ResetType: "On" } }).status, 409);
    await clock.advance(2_000);
    assert.equal(send("GET", SYSTEM).json["PowerState"], "Off");
    assert.deepEqual(
      rack.host("a").orders.map(({ type }) => type),
      ["ForceOff", "On"],
    );
  });

  it("the Redfish service refuses a reset that makes no sense, and orders nothing", () => {
    const { rack, send } = setUp();
    const cases: [unknown, string][] = [
      [{}, "ActionParameterMissing"],
      [{ ResetType: "Explode" }, "ActionParameterValueNotInList"],
      [{ ResetType: 7 }, "ActionParameterValueNotInList"],
      ["{", "MalformedJSON"],
      ["[]", "MalformedJSON"],
    ];
    for (const [body, code] of cases) {
      const answer = send("POST", RESET, { body });
      assert.equal(answer.status, 400);
      assert.equal(messageId(answer), code);
    }
    const tagged = send("POST", RESET, { body: { ResetType: "On" }, headers: { "if-match": '"x"' } });
    assert.equal(tagged.status, 412, "an action has no ETag, as iDRAC10 says");
    assert.equal(send("GET", RESET).status, 405);
    assert.equal(send("GET", RESET).headers["allow"], "POST");
    assert.equal(rack.host("a").orders.length, 0);
  });

  it("the Redfish service accepts an order that changes nothing, or refuses it if it is configured to", () => {
    const { send } = setUp();
    const body = { ResetType: "On" };
    assert.equal(send("POST", RESET, { body }).status, 204);
    assert.equal(send("POST", RESET, { body, style: { refuseNoChangeStatus: 409 } }).status, 409);
    assert.equal(send("POST", RESET, { body, style: { refuseNoChangeStatus: 400 } }).status, 400);
  });

  it("the Redfish service answers with a task that ends when the host is there", async () => {
    const { clock, send } = setUp();
    const style = { task: { retryAfterSeconds: 3, endless: false } };
    const accepted = send("POST", RESET, { body: { ResetType: "ForceOff" }, style });
    assert.equal(accepted.status, 202);
    assert.equal(accepted.headers["retry-after"], "3");
    const monitor = accepted.headers["location"] ?? "";
    assert.equal(send("GET", monitor).status, 202);
    const task = String(accepted.json["@odata.id"]);
    assert.equal(send("GET", task).json["TaskState"], "Running");
    await clock.advance(2_000);
    assert.equal(send("GET", task).json["TaskState"], "Completed");
    assert.equal(send("GET", monitor).status, 204);
  });

  it("the Redfish service has tasks that never end", async () => {
    const { clock, send } = setUp();
    const style = { task: { retryAfterSeconds: 1, endless: true } };
    const accepted = send("POST", RESET, { body: { ResetType: "ForceOff" }, style });
    await clock.advance(60_000);
    assert.equal(send("GET", accepted.headers["location"] ?? "").status, 202);
    assert.equal(send("GET", SYSTEM).json["PowerState"], "Off");
  });

  it("the Redfish service sets and clears the boot override, which is used up by the boot", async () => {
    const { clock, rack, send } = setUp();
    const boot = { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "Pxe", BootSourceOverrideMode: "UEFI" };
    const read = (): Body => send("GET", SYSTEM).json["Boot"] as Body;
    assert.equal(send("PATCH", SYSTEM, { body: { Boot: boot } }).status, 200);
    assert.equal(read()["BootSourceOverrideTarget"], "Pxe");
    assert.equal(send("PATCH", SYSTEM, { body: { Boot: { BootSourceOverrideEnabled: "Disabled" } } }).status, 200);
    assert.equal(read()["BootSourceOverrideTarget"], "None");
    send("PATCH", SYSTEM, { body: { Boot: boot } });
    rack.host("a").order("PowerCycle");
    await clock.advance(4_000);
    assert.equal(read()["BootSourceOverrideEnabled"], "Disabled");
    assert.equal(rack.host("a").os, "installing");
  });

  it("the Redfish service refuses patches of unknown, wrong or no properties, and of an old ETag", () => {
    const { rack, send } = setUp();
    const old = send("GET", SYSTEM).headers["etag"] ?? "";
    const cases: [unknown, string][] = [
      [{ PowerState: "Off" }, "PropertyUnknown"],
      [{ Boot: { BootSourceOverrideTarget: "Floppy" } }, "PropertyValueNotInList"],
      [{}, "NoOperation"],
      [{ "@odata.id": SYSTEM }, "NoOperation"],
    ];
    for (const [body, code] of cases) {
      const answer = send("PATCH", SYSTEM, { body });
      assert.equal(answer.status, 400);
      assert.equal(messageId(answer), code);
    }
    rack.host("a").setBoot({ enabled: "Once", target: "Hdd", mode: "UEFI" });
    const body = { Boot: { BootSourceOverrideEnabled: "Disabled" } };
    assert.equal(send("PATCH", SYSTEM, { body, headers: { "if-match": old } }).status, 412);
    const fresh = send("GET", SYSTEM).headers["etag"] ?? "";
    assert.equal(send("PATCH", SYSTEM, { body, headers: { "if-match": fresh } }).status, 200);
  });

  it("the Redfish service reports reset types if it is configured to", () => {
    const action = (resetTypesIn: ResetTypesIn): { answer: Body; info: number } => {
      const { send } = setUp({ resetTypesIn });
      const actions = send("GET", SYSTEM).json["Actions"] as Record<string, Body>;
      return { answer: actions["#ComputerSystem.Reset"] ?? {}, info: send("GET", `${SYSTEM}/ResetActionInfo`).status };
    };
    assert.ok("ResetType@Redfish.AllowableValues" in action("AllowableValues").answer);
    assert.equal(action("ActionInfo").answer["@Redfish.ActionInfo"], `${SYSTEM}/ResetActionInfo`);
    assert.equal(action("ActionInfo").info, 200);
    assert.deepEqual(action("nowhere").answer, { target: RESET });
    assert.equal(action("nowhere").info, 404);
  });

  it("the Redfish service rejects queries that it does not know, and other OData versions", () => {
    const { send } = setUp();
    assert.equal(send("GET", "/redfish/v1/Systems?$expand=*").status, 501);
    assert.equal(send("GET", "/redfish/v1/Systems", { headers: { "odata-version": "4.1" } }).status, 412);
  });
});

describe("the Redfish mock's sessions", () => {
  it("the Redfish mock's sessions open with the right password, serve by their token, and end when deleted", () => {
    const { send } = setUp();
    const opened = send("POST", SESSIONS, { body: LOGIN, anonymous: true });
    assert.equal(opened.status, 201);
    const headers = { "x-auth-token": opened.headers["x-auth-token"] ?? "" };
    assert.equal(opened.json["Password"], null);
    assert.equal(send("GET", SYSTEM, { headers, anonymous: true }).status, 200);
    assert.equal(send("DELETE", opened.headers["location"] ?? "", { headers, anonymous: true }).status, 204);
    assert.equal(send("GET", SYSTEM, { headers, anonymous: true }).status, 401);
  });

  it("the Redfish mock's sessions are refused with a wrong password", () => {
    const { send } = setUp();
    assert.equal(send("POST", SESSIONS, { body: { ...LOGIN, Password: "x" }, anonymous: true }).status, 401);
    assert.equal(send("POST", SESSIONS, { body: { UserName: "admin" }, anonymous: true }).status, 400);
  });

  it("the Redfish mock's sessions are as few as the table holds, and make room when they time out", async () => {
    const { clock, send } = setUp({ sessionsMax: 2 });
    const open = (): Answer => send("POST", SESSIONS, { body: LOGIN, anonymous: true });
    assert.deepEqual([open().status, open().status], [201, 201]);
    const full = open();
    assert.equal(full.status, 503);
    assert.equal(full.headers["retry-after"], "5");
    assert.equal(send("PATCH", "/redfish/v1/SessionService", { body: { SessionTimeout: 30 } }).status, 200);
    await clock.advance(30_001);
    assert.equal(open().status, 201);
  });
});

describe("the Redfish mock's accounts", () => {
  it("the Redfish mock's accounts may do what their role allows", () => {
    const { rack, send } = setUp();
    const account = { UserName: "viewer", Password: "look at it", RoleId: "ReadOnly" };
    const created = send("POST", "/redfish/v1/AccountService/Accounts", { body: account });
    assert.equal(created.status, 201);
    const headers = { authorization: `Basic ${Buffer.from("viewer:look at it").toString("base64")}` };
    assert.equal(send("GET", SYSTEM, { headers }).status, 200);
    assert.equal(send("POST", RESET, { headers, body: { ResetType: "ForceOff" } }).status, 403);
    assert.equal(rack.host("a").orders.length, 0);
    const path = created.headers["location"] ?? "";
    assert.equal(send("PATCH", path, { body: { RoleId: "Operator" } }).status, 200);
    assert.equal(send("POST", RESET, { headers, body: { ResetType: "ForceOff" } }).status, 204);
    assert.equal(send("PATCH", path, { body: { Enabled: false } }).status, 200);
    assert.equal(send("GET", SYSTEM, { headers }).status, 401);
  });
});
