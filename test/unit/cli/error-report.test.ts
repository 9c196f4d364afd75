import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { BmcError } from "../../../src/bmc/interface/errors.ts";
import { ERROR_CODES, pageOfError } from "../../../src/cli/errors/error-codes.ts";
import { reportError } from "../../../src/cli/errors/error-report.ts";
import {
  CommandFailure,
  EXIT_FAILURE,
  EXIT_REFUSED,
  EXIT_USAGE,
  CommandRefusal,
} from "../../../src/cli/errors/failures.ts";
import { OptionError } from "../../../src/config/option.ts";
import { ClusterConfigError, KubeError } from "../../../src/kube/errors.ts";
import { LeadershipLostError } from "../../../src/kube/lease/lease-term.ts";
import { REASONS } from "../../../src/remediator/machine/model/decision/reasons.ts";
import { DeadlineError } from "../../../src/runtime/deadline.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(`${ROOT}/${path}`, "utf8");

describe("the codes of commands' errors", () => {
  it("the codes of commands' errors have a heading each in docs/reference/errors.md, and no other is there", () => {
    const headings = [...read("docs/reference/errors.md").matchAll(/^### (\w+)$/gm)].map(([, code = ""]) => code);
    assert.deepEqual(headings.sort(), [...ERROR_CODES].sort());
    assert.equal(pageOfError("APIForbidden"), "docs/reference/errors.md#apiforbidden");
  });

  it("the codes of commands' errors are not reasons of a remediation too", () => {
    const reasons = new Set<string>(REASONS);
    assert.deepEqual(
      ERROR_CODES.filter((code) => reasons.has(code)),
      [],
    );
  });

  it("the codes of commands' errors are all in use", () => {
    const files = globSync(["src/cli/**/*.ts", "src/main.ts"], { cwd: ROOT }).filter(
      (file) => !file.endsWith("error-codes.ts"),
    );
    const source = files.map(read).join("\n");
    assert.deepEqual(
      ERROR_CODES.filter((code) => !source.includes(`"${code}"`)),
      [],
    );
  });
});

describe("the report on an error of a command", () => {
  const CASES: readonly [error: Error, code: string, exitCode: number][] = [
    [new CommandFailure("FenceFailed", "x"), "FenceFailed", EXIT_FAILURE],
    [new CommandRefusal("Refused", "x"), "Refused", EXIT_REFUSED],
    [new OptionError("x"), "CommandLineInvalid", EXIT_USAGE],
    [new ClusterConfigError("x"), "KubeconfigInvalid", EXIT_FAILURE],
    [new KubeError("Network", "x"), "APIUnreachable", EXIT_FAILURE],
    [new KubeError("Timeout", "x"), "APITimeout", EXIT_FAILURE],
    [new KubeError("Aborted", "x"), "Stopped", EXIT_FAILURE],
    [new LeadershipLostError("x"), "LeaseLost", EXIT_FAILURE],
    [new DeadlineError("x", 1), "DeadlineExceeded", EXIT_FAILURE],
    [new BmcError("AuthFailed", "x"), "BMCAuthenticationFailed", EXIT_FAILURE],
    [new BmcError("Aborted", "x"), "Stopped", EXIT_FAILURE],
  ];

  it("the report on an error of a command begins with its code in brackets, and names the page that explains it", () => {
    for (const [error, code, exitCode] of CASES) {
      const report = reportError(error);
      assert.deepEqual([report.code, report.exitCode], [code, exitCode]);
      assert.match(report.message, new RegExp(`^\\[${code}\\] \\S`));
      const [page = "", anchor = ""] = report.page.split("#");
      assert.match(read(page).toLowerCase(), new RegExp(`^### ${anchor}$`, "m"), code);
    }
  });

  it("the report on an error of a command ends with the next step of an API error", () => {
    assert.match(reportError(new KubeError("Forbidden", "x")).message, /^\[APIForbidden\] x: grant /);
    assert.match(reportError(new KubeError("Conflict", "x")).message, /^\[APIConflict\] x: run the command again$/);
  });

  it("the report on an error of a command keeps to one line, whatever an API server has answered", () => {
    assert.doesNotMatch(reportError(new CommandFailure("FenceFailed", "a\nb\u001b[2J")).message, /\p{Cc}/u);
  });

  it("the report on an error of a command shows the stack of a defect", () => {
    const { message, code } = reportError(new TypeError("no such thing"));
    assert.equal(code, "InternalError");
    assert.match(message, /^\[InternalError\] TypeError: no such thing\n +at /);
  });
});
