import assert from "node:assert/strict";
import { cp, mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runPeer, startRedfishWorld } from "../../../hack/e2e/peers.ts";
import type { RedfishWorld } from "../../../hack/e2e/peers.ts";
import { installPythonTools } from "../../../hack/e2e/python-tools.ts";

const INSTALL_TIMEOUT_MS = 5 * 60_000;

/** The minimum number of passed checks. Without schemas, the validator only prints warnings and validates nothing. */
const SERVICE_PASSES_MIN = 300;
const PROTOCOL_PASSES_MIN = 300;

void describe("DMTF's validators judge our simulated BMC", () => {
  let world: RedfishWorld;
  let programs = "";

  before(async () => {
    programs = await installPythonTools(() => undefined, AbortSignal.timeout(INSTALL_TIMEOUT_MS));
    world = await startRedfishWorld();
  });
  after(() => world?.[Symbol.asyncDispose]());

  void test("redfish-service-validator finds that every resource fits DMTF's schemas, without a warning", async (context) => {
    const schemas = join(world.folder, "schemas");
    const source = process.env.IRONFENCE_REDFISH_SCHEMAS;
    if (source === undefined) await mkdir(schemas);
    else await cp(source, schemas, { recursive: true });
    const login = ["-u", world.username, "-p", world.password, "-r", world.url, "--authtype", "Basic"];
    const files = ["--schema_directory", schemas, "--logdir", join(world.folder, "service")];
    const fetching = source === undefined ? [] : ["--skipschema"];
    const printed = await runPeer(join(programs, "rf_service_validator"), [...login, ...files, ...fetching], world.env);

    const table = /\|\s*PASS\s*\|\s*WARN\s*\|\s*FAIL\s*\|.*\n.*\n\|\s*(\d+)\s*\|\s*(\d+)\s*\|\s*(\d+)\s*\|/.exec(
      printed,
    );
    assert.ok(table, printed);
    const [pass, warn, fail] = table.slice(1).map(Number);
    context.diagnostic(`redfish-service-validator: PASS ${pass}, WARN ${warn}, FAIL ${fail}`);
    assert.ok(
      Number(pass) >= SERVICE_PASSES_MIN,
      `only ${pass} passed: IRONFENCE_REDFISH_SCHEMAS must name a folder of DMTF's CSDL files; it is ${source ?? "not set"}`,
    );
    assert.deepEqual({ warn, fail }, { warn: 0, fail: 0 }, printed);
  });

  void test("redfish-protocol-validator reports no failure and no warning", async (context) => {
    const reports = join(world.folder, "protocol");
    const login = ["-u", world.username, "-p", world.password, "-r", world.url, "--ca-bundle", world.caFile];
    const output = ["--avoid-http-redirect", "--report-type", "tsv", "--report-dir", reports];
    // It exits with 1 if a check fails. The report has the details.
    const ended = await runPeer(join(programs, "rf_protocol_validator"), [...login, ...output], world.env).catch(
      String,
    );
    const file = (await readdir(reports).catch(() => [])).find((name) => name.endsWith(".tsv"));
    assert.ok(file, ended);
    const rows = (await readFile(join(reports, file), "utf8")).split("\n").map((line) => line.split("\t"));
    const of = (wanted: string): string[][] => rows.filter(([, , , , result]) => result === wanted);
    const counts = ["PASS", "WARN", "FAIL", "NOT_TESTED"].map((result) => `${result} ${of(result).length}`);
    context.diagnostic(`redfish-protocol-validator: ${counts.join(", ")}`);
    assert.deepEqual([...of("FAIL"), ...of("WARN")], []);
    assert.ok(of("PASS").length >= PROTOCOL_PASSES_MIN, `only ${of("PASS").length} passed: ${ended}`);
  });
});
