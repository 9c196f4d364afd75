import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import { SentSecrets } from "../../src/bmc/redfish/http/sent-secrets.ts";
import { ok, openFake, redfishError, SESSIONS, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { Request } from "./bmc-fixture.ts";

const never = new AbortController().signal;
const PASSWORD = `Pa ss"w/ö!x`;
const TOKEN = "f00dfeed-9a/1+2==";
/** A request as a BMC may repeat it: in headers, JSON, addresses and forms. */
const repeat = ({ headers }: Request): string =>
  [
    `Authorization: ${String(headers.authorization)} X-Auth-Token: ${String(headers["x-auth-token"])}`,
    `${PASSWORD} ${JSON.stringify({ Password: PASSWORD })} ${encodeURIComponent(PASSWORD)}`,
    `${new URLSearchParams({ Password: PASSWORD }).toString()} ${encodeURIComponent(PASSWORD).toLowerCase()}`,
  ].join(" ");

/** Every text of every error in the chain, as a log prints it. */
function textsOf(error: unknown): string {
  const texts: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) texts.push(at.message, at.stack ?? "");
  return texts.join("\n");
}

function assertHidden(text: string): void {
  const login = Buffer.from(`fence:${PASSWORD}`).toString("base64");
  const forms = [
    PASSWORD,
    JSON.stringify(PASSWORD).slice(1, -1),
    encodeURIComponent(PASSWORD),
    "Pa+ss",
    "Pa ss",
    login,
  ];
  for (const form of [...forms, TOKEN, encodeURIComponent(TOKEN), "f00dfeed"]) {
    assert.ok(!text.includes(form), `${form} in: ${text}`);
  }
}

async function failureOf(call: Promise<unknown>): Promise<BmcError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof BmcError, String(error));
    return error;
  }
  return assert.fail("the call did not fail");
}

describe("a BMC that repeats its requests in its errors", () => {
  it("a BMC that repeats requests in its errors is quoted without the password of basic authentication and without its header", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = (request) => {
      if (request.path === "/redfish/v1/") return ok({ Systems: { "@odata.id": "/redfish/v1/Systems" } });
      if (request.path.startsWith(SESSIONS)) return { status: 404 };
      return redfishError(400, "Base.1.0.MalformedJSON", `${request.method} was: ${repeat(request)}`);
    };
    const device = openFake(bmc, { password: PASSWORD });
    for (const call of ["readPower", "identify", "forceOff"] as const) {
      const error = await failureOf(device[call](never));
      assert.match(error.message, /HTTP 400: GET was: Authorization: Basic \[secret\] /);
      assertHidden(textsOf(error));
    }
    await device.close();
  });

  it("a BMC that repeats its requests in its errors is not quoted with the token of a session, nor with the password that opened it", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = (request) => {
      const { path, method } = request;
      if (path === SESSIONS && method === "POST") {
        return { status: 201, headers: { "X-Auth-Token": TOKEN, Location: `${SESSIONS}/1` } };
      }
      if (method === "DELETE") return { status: 204 };
      return redfishError(500, "Base.1.0.InternalError", `trace: ${repeat(request)}`);
    };
    const device = openFake(bmc, { path: SYSTEM, password: PASSWORD });
    const error = await failureOf(device.readPower(never));
    assert.match(error.message, /HTTP 500: trace: Authorization: undefined X-Auth-Token: \[secret\]/);
    assertHidden(textsOf(error));
    await device.close();
  });

  it("a BMC that repeats its requests in its errors shows no part of a password if its text is cut off", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path }) => {
      if (path === "/redfish/v1/") return ok({});
      if (path.startsWith(SESSIONS)) return { status: 404 };
      return redfishError(400, "Base.1.0.GeneralError", `${"x".repeat(195)}${PASSWORD}`);
    };
    const device = openFake(bmc, { path: SYSTEM, password: PASSWORD });
    const error = await failureOf(device.readPower(never));
    assert.ok(!error.message.includes("xPa"), error.message);
    await device.close();
  });

  it("a BMC that repeats its requests in its errors is not quoted with them in a power state or in the reason why it could not be powered off either", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = (request) => {
      if (request.path === "/redfish/v1/") return ok({});
      if (request.path.startsWith(SESSIONS)) return { status: 404 };
      return request.path === SYSTEM ? ok({ ...bmc.system, PowerState: `On ${PASSWORD}` }) : { status: 404 };
    };
    const device = openFake(bmc, { path: SYSTEM, password: PASSWORD });
    const { state, raw } = await device.readPower(never);
    assert.equal(state, "Unknown");
    assertHidden(raw);
    const obstacle = await device.findOffObstacle?.(never);
    assert.equal(obstacle?.reason, "PowerUnreadable");
    assertHidden(obstacle.message);
    await device.close();
  });

  it("a BMC that repeats its requests in its errors keeps its identity as it shows it, since a host is recognized by it", async () => {
    await using bmc = await startFakeBmc();
    // Some operators set the serial number as the password.
    bmc.system["SerialNumber"] = "s3cret-pass";
    const device = openFake(bmc);
    assert.equal((await device.identify(never)).serialNumber, "s3cret-pass");
    await device.close();
  });
});

describe("the passwords and tokens that were sent", () => {
  it("the passwords and tokens that were sent are bounded in number, and the password is kept while tokens follow each other", () => {
    const sent = new SentSecrets();
    for (let session = 0; session < 1_000; session++) {
      sent.note({}, { UserName: "fence", Password: PASSWORD });
      sent.note({ "x-auth-token": `token-${session}-` }, {});
    }
    assert.equal(sent.hide(`token-0- token-999- ${PASSWORD}`), "token-0- [secret] [secret]");
  });

  it("the passwords and tokens that were sent are hidden as the header of basic authentication and as what that contains", () => {
    const sent = new SentSecrets();
    const encoded = Buffer.from(`fence:${PASSWORD}`).toString("base64");
    sent.note({ authorization: `Basic ${encoded}` }, {});
    assert.equal(sent.hide(`Basic ${encoded}, fence:${PASSWORD}`), "Basic [secret], fence:[secret]");
  });

  it("the passwords and tokens that were sent of fewer than four characters are left in texts, which would lose their words", () => {
    const sent = new SentSecrets();
    sent.note({}, { UserName: "a", Password: "on" });
    assert.equal(sent.hide("power is on"), "power is on");
  });
});
