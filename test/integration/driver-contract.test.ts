import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { ValidateFunction } from "ajv/dist/2020.js";
import { parse } from "yaml";
import { HEADERS, KEY_LENGTH_MIN, TIME_WINDOW_S } from "../../src/bmc/http-driver/signature.ts";
import { forever, hasCode } from "./bmc-fixture.ts";
import { HOST, startFakeDriver } from "./driver-fixture.ts";

// Compares docs/reference/driver-openapi.yaml with the requests that the driver sends and the answers that it accepts.

interface OpenApi {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
  components: {
    parameters: Record<string, { name: string; required: boolean; schema: { pattern: string } }>;
    schemas: Record<string, object>;
  };
}

const page = readFileSync(new URL("../../docs/reference/driver.md", import.meta.url), "utf8");
const api = parse(
  readFileSync(new URL("../../docs/reference/driver-openapi.yaml", import.meta.url), "utf8"),
) as OpenApi;

function schema(name: string): ValidateFunction {
  const ajv = new Ajv2020({ strict: false });
  ajv.addSchema({ ...api, $id: "openapi" });
  return ajv.compile({ $ref: `openapi#/components/schemas/${name}` });
}

test("the OpenAPI file has each request that the driver sends, with its headers and its body", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  await device.identify(forever());
  await device.forceOff(forever());
  await device.on(forever());
  const isOrder = schema("Order");
  const sent = new Set<string>();
  for (const { method, path, headers, body } of server.requests) {
    const name = path.slice(HOST.length);
    sent.add(`${method} ${name}`);
    assert.ok(api.paths[name]?.[method.toLowerCase()] !== undefined, `${method} ${name}`);
    for (const { name, schema } of Object.values(api.components.parameters)) {
      assert.match(String(headers[name]), new RegExp(schema.pattern, "u"), name);
    }
    if (method === "POST") assert.ok(isOrder(JSON.parse(body)), body);
    else assert.equal(body, "");
  }
  const described = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => method !== "parameters")
      .map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.deepEqual([...sent].toSorted(), described.toSorted());
  const names = Object.values(api.components.parameters).map(({ name }) => name);
  assert.deepEqual(names.toSorted(), Object.values(HEADERS).toSorted());
  // With a client certificate there is no signing key, so these headers are not required.
  const required = Object.values(api.components.parameters).filter((parameter) => parameter.required);
  assert.deepEqual(required.map(({ name }) => name).toSorted(), ["ironfence-nonce", "ironfence-time"]);
});

test("the OpenAPI file describes the answers that the driver accepts, and no state that it would not know", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  const isStatus = schema("Status");
  for (const state of ["On", "Off", "Changing", "Unknown"]) {
    const body = JSON.stringify({ state, identity: { serialNumber: "SN-1" } });
    assert.ok(isStatus(JSON.parse(body)), state);
    server.override = () => ({ status: 200, signed: true, body });
    assert.equal((await device.readPower(forever())).state, state);
  }
  for (const wrong of [
    { state: "off", identity: { serialNumber: "SN-1" } },
    { state: "Off", identity: {} },
    { identity: { serialNumber: "SN-1" } },
  ]) {
    assert.ok(!isStatus(wrong), JSON.stringify(wrong));
  }
});

test("each status in the OpenAPI file has a meaning of its own for the driver", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  const codes = {
    400: "Unsupported",
    401: "AuthFailed",
    403: "PrivilegeTooLow",
    404: "SystemNotFound",
    405: "Unsupported",
    409: "Refused",
    429: "Busy",
    500: "BadResponse",
    501: "Unsupported",
    503: "Busy",
  } as const;
  const listed = Object.values(api.paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ responses }) => Object.keys(responses ?? {})),
  );
  const failures = listed.map(Number).filter((status) => status >= 300);
  assert.deepEqual(new Set(failures), new Set(Object.keys(codes).map(Number)));
  for (const [status, code] of Object.entries(codes)) {
    server.override = ({ method }) =>
      method === "POST" ? { status: Number(status), ...(status !== "401" && { signed: true }) } : undefined;
    await assert.rejects(device.forceOff(forever()), hasCode(code), status);
  }
});

test("the page of driver servers has the numbers and the headers of the code", () => {
  assert.ok(page.includes(`It has ${KEY_LENGTH_MIN} characters or\nmore`));
  assert.ok(page.includes(`more than ${TIME_WINDOW_S} s away`));
  for (const name of Object.values(HEADERS)) assert.ok(page.includes(`\`${name}\``), name);
});
