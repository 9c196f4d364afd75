import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { TARGET_REASONS } from "../../../../../src/remediator/hosts/fencing-target/target-reasons.ts";

const read = (path: string): Promise<string> => readFile(new URL(`../../../../../${path}`, import.meta.url), "utf8");

test("every condition reason of a FencingTarget is explained in docs/reference/target-reasons.md, and none that does not exist", async () => {
  const [status, probe, errors, driver, docs] = await Promise.all(
    [
      "src/remediator/probes/target-status.ts",
      "src/remediator/probes/probe-result.ts",
      "src/bmc/interface/errors.ts",
      "src/bmc/interface/driver.ts",
      "docs/reference/target-reasons.md",
    ].map(read),
  );
  const reasons = new Set<string>();
  const collect = (text: string, pattern: RegExp): void => {
    for (const [, reason = ""] of text.matchAll(pattern)) reasons.add(reason);
  };
  collect(status ?? "", /\breason: "(\w+)"/g);
  collect(status ?? "", /\? "(\w+)" : "NotReported"/g);
  collect(status ?? "", /\? "NothingToCompare" : "(\w+)"/g);
  const obstacles = /interface OffObstacle \{[^]*?reason:\s([^;]*);/.exec(driver ?? "")?.[1] ?? "";
  assert.notEqual(obstacles, "");
  collect(obstacles, /"(\w+)"/g);
  const failures = /export type DeviceFailure =([^;]*)Exclude<BmcErrorCode, ([^>]*)>/.exec(probe ?? "");
  assert.ok(failures);
  collect(failures[1] ?? "", /"(\w+)"/g);
  const codes = /export type BmcErrorCode =([^;]*);/.exec(errors ?? "")?.[1] ?? "";
  for (const [, code = ""] of codes.matchAll(/"(\w+)"/g)) if (!failures[2]?.includes(`"${code}"`)) reasons.add(code);
  const documented = [...(docs ?? "").matchAll(/^### (\w+)$/gm)].map(([, reason]) => reason ?? "");
  assert.deepEqual(documented.toSorted(), [...reasons].toSorted());
});

test("the metric of FencingTargets knows every reason that Ready can have", async () => {
  const documented = [...(await read("docs/reference/target-reasons.md")).matchAll(/^### (\w+)$/gm)];
  const good = ["Answering", "Matched", "VerificationDisabled"];
  const wanted = documented.map(([, reason = ""]) => reason).filter((reason) => !good.includes(reason));
  assert.deepEqual([...TARGET_REASONS].toSorted(), wanted.toSorted());
});
