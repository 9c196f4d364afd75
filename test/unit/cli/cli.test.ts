import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { runCli } from "../../../src/cli/app.ts";
import type { CliContext } from "../../../src/cli/terminal/context.ts";
import { EXIT_USAGE } from "../../../src/cli/errors/failures.ts";
import { completeSwitches } from "../../../src/cli/flags/flags.ts";
import { renderTable } from "../../../src/cli/terminal/table.ts";
import { systemClock, systemRandom } from "../../../src/runtime/system.ts";
import { openDeviceOn } from "../../lib/open-device.ts";
import { VERSION } from "../../../src/runtime/version.ts";

/** Runs one command line in this process. */
async function cli(...inputs: string[]): Promise<{ out: string; err: string; code: number }> {
  return cliIn({}, ...inputs);
}

async function cliIn(
  env: Readonly<Record<string, string>>,
  ...inputs: string[]
): Promise<{ out: string; err: string; code: number }> {
  const texts = { out: "", err: "" };
  // A terminal with colors, if the test uses one.
  const terminal = env["TERM"] === "xterm-256color" ? { getColorDepth: (): number => 24 } : {};
  const process: CliContext["process"] = {
    stdout: { write: (text: string) => void (texts.out += text), ...terminal },
    stderr: { write: (text: string) => void (texts.err += text), ...terminal },
    env,
    exitCode: null,
  };
  const signal = new AbortController().signal;
  const openDevice = openDeviceOn(systemClock);
  await runCli(inputs, { process, clock: systemClock, random: systemRandom, openDevice, signal, terminal: undefined });
  return { ...texts, code: Number(process.exitCode) };
}

describe("the command line", () => {
  it("the command line explains itself and every command, with examples", async () => {
    const { out } = await cli("--help");
    for (const command of [
      "run",
      "status",
      "check",
      "bundle",
      "pause",
      "resume",
      "explain",
      "probe",
      "power",
      "driver",
      "fence",
      "completion",
    ]) {
      assert.match(out, new RegExp(`^  ${command} `, "m"));
      const help = await cli(command, "--help");
      assert.equal(help.code, 0);
      assert.match(help.out, /USAGE/);
    }
  });

  it("the command line accepts what users type first: help, help of a command, and version", async () => {
    assert.equal((await cli("help")).out, (await cli("--help")).out);
    assert.equal((await cli("help", "power", "off")).out, (await cli("power", "off", "--help")).out);
    assert.equal((await cli("version")).out, `${VERSION}\n`);
    const usage = (await cli("--help")).out;
    assert.match(usage, /^  ironfence help <command>\.\.\.$/m);
    assert.match(usage, /^  ironfence version$/m);
    assert.equal((await cli("help", "nothing")).code, EXIT_USAGE);
  });

  it("the command line prints colors if a terminal has them, and none under NO_COLOR", async () => {
    const TERM = "xterm-256color";
    assert.ok((await cliIn({ TERM }, "--help")).out.includes("\u001b["));
    assert.ok(!(await cliIn({ TERM, NO_COLOR: "1" }, "--help")).out.includes("\u001b["));
    const { err } = await cliIn({ TERM }, "status", "-o", "json", "--bogus");
    assert.ok(err.startsWith("{"), "JSON is never coloured");
  });

  it("the command line reports errors as JSON if results are JSON, with the exit code in it", async () => {
    for (const asked of [["-o", "json"], ["--output", "json"], ["--output=json"]]) {
      const { err, code } = await cli("status", ...asked, "--kubeconfig", "/nonexistent/kubeconfig");
      const { error } = JSON.parse(err) as {
        error: Record<"message" | "reason" | "page", string> & { exitCode: number };
      };
      assert.deepEqual([error.exitCode, code], [1, 1]);
      assert.deepEqual([error.reason, error.page], ["KubeconfigInvalid", "docs/reference/errors.md#kubeconfiginvalid"]);
      assert.match(error.message, /^(?!ironfence:).*\/nonexistent\/kubeconfig/);
    }
    const usage = await cli("status", "--bogus", "-o", "json");
    assert.equal((JSON.parse(usage.err) as { error: { exitCode: number } }).error.exitCode, EXIT_USAGE);
    assert.equal(usage.code, EXIT_USAGE);
    assert.match((await cli("rnu", "-o", "json")).err, /^\{"error":/);
    const byVariable = await cliIn({ IRONFENCE_OUTPUT: "json" }, "status", "--kubeconfig", "/nonexistent/kubeconfig");
    assert.match(byVariable.err, /^\{"error":/);
  });

  it("the command line takes -n for --namespace wherever there is one", async () => {
    const commands = [
      "run",
      "status",
      "check",
      "bundle",
      "pause",
      "resume",
      "explain node n",
      "explain nhc n",
      "explain mhc a/n",
    ];
    for (const command of [
      ...commands,
      "probe --target t",
      "power status --target t",
      "bmc reset --target t",
      "fence --node n",
    ]) {
      const { err, code } = await cli(...command.split(" "), "-n", "Not_A_Name");
      assert.equal(code, EXIT_USAGE, command);
      assert.match(err, /--namespace: must be a Kubernetes name/, command);
    }
  });

  it("the command line reports a wrong option in one line, without a stack", async () => {
    const { err, code } = await cli("run", "--log-level", "loud");
    assert.equal(code, EXIT_USAGE);
    assert.match(err, /^ironfence: \[CommandLineInvalid\] --log-level: must be one of .*\n$/);
    assert.match(
      (await cli("status", "-o", "xml")).err,
      /^ironfence: \[CommandLineInvalid\] --output: must be table or json .*\n$/,
    );
  });

  it("the command line says where to find help after a command line that it cannot read", async () => {
    const { err, code } = await cli("status", "--bogus");
    assert.equal(code, EXIT_USAGE);
    assert.match(
      err,
      /^ironfence status: \[CommandLineInvalid\] No flag registered for --bogus.* \(see ironfence status --help\) \(docs[^)]+\)\n$/,
    );
    assert.match(
      (await cli("fence", "node-1")).err,
      /\(name the node with --node node-1; see ironfence fence --help\)/,
    );
  });

  it("the command line takes a flag that is true or false without a value for true, wherever the flag is, but not an empty value", async () => {
    const address = "ipmi://bmc.invalid:99999";
    for (const flags of [
      ["--insecure-skip-verify"],
      ["--insecure-skip-verify", "true"],
      ["--insecure-skip-verify=true"],
    ]) {
      for (const inputs of [
        [...flags, address],
        [address, ...flags],
      ]) {
        assert.match((await cli("probe", ...inputs)).err, /^ironfence: (?!.*insecure)/, inputs.join(" "));
      }
    }
    for (const value of ["", "yes"]) {
      const { code } = await cli("probe", address, "--insecure-skip-verify", value);
      assert.equal(code, EXIT_USAGE, value);
    }
    assert.deepEqual(completeSwitches(["--leader-elect", "--insecure-skip-verify", "false", "--output"]), [
      "--leader-elect=true",
      "--insecure-skip-verify",
      "false",
      "--output",
    ]);
  });

  it("the command line reports a missing kubeconfig in one line that names the file", async () => {
    const { err, code } = await cli("status", "--kubeconfig", "/nonexistent/kubeconfig");
    assert.equal(code, 1);
    assert.match(
      err,
      /^ironfence: \[KubeconfigInvalid\] [^\n]*\/nonexistent\/kubeconfig[^\n]* \(docs\/reference\/errors\.md#kubeconfiginvalid\)\n$/,
    );
  });

  it("the command line reports a log that it cannot replay in one line, whether it is missing or holds something else", async () => {
    for (const file of ["/nonexistent/decisions.jsonl", import.meta.filename]) {
      const { err, code } = await cli("replay", file);
      assert.equal(code, 1);
      assert.match(err, /^ironfence: \[DecisionLogUnusable\] cannot replay \/[^\n]*record-decisions[^\n]*\n$/);
    }
  });

  it("the command line proposes what was probably meant", async () => {
    assert.match((await cli("rnu")).err, /did you mean `run`/);
  });

  it("the command line says where flags belong if they come before the command", async () => {
    const { err, code } = await cli("--kubeconfig", "/nonexistent/kubeconfig", "status");
    assert.equal(code, EXIT_USAGE);
    assert.match(err, /^ironfence: \[CommandLineInvalid\] --kubeconfig: flags come after the command/);
  });

  it("the command line prints a completion script for each shell, and refuses others", async () => {
    for (const shell of ["bash", "zsh", "fish"]) assert.match((await cli("completion", shell)).out, /__complete/);
    assert.equal((await cli("completion", "tcsh")).code, EXIT_USAGE);
  });

  it("the command line proposes flags and values to the completion scripts", async () => {
    assert.match((await cli("__complete", "run", "--lea")).out, /^--leader-elect\t/);
    assert.match((await cli("__complete", "completion", "")).out, /^bash/m);
    assert.match((await cli("__complete", "power", "")).out, /^cycle\t/m);
    assert.match((await cli("__complete", "explain", "")).out, /^nhc\t/m);
    assert.match((await cli("__complete", "fence", "--strategy", "")).out, /^escalate/m);
    assert.match((await cli("__complete", "status", "--output", "j")).out, /^json\t/);
    assert.match((await cli("__complete", "run", "--log-level", "w")).out, /^warn\t/);
    const nowhere = { IRONFENCE_KUBECONFIG: "/nonexistent/kubeconfig" };
    assert.equal(
      (await cliIn(nowhere, "__complete", "fence", "--node", "")).out,
      "",
      "a cluster that cannot be reached proposes nothing",
    );
    assert.match(
      (await cli("__complete", "run", "--families", "okd-")).out,
      /^okd-machine\t.*\nokd-machine-health-check\t.*\n$|^okd-machine-health-check\t.*\nokd-machine\t.*\n$/,
    );
    const { out } = await cli("__complete", "run", "--families", "okd-machine,metal3-remediation,okd-");
    assert.match(out, /^okd-machine,metal3-remediation,okd-machine-health-check\t[^\n]*\n$/);
  });

  it("the command line lays tables out in columns", () => {
    assert.deepEqual(
      renderTable(
        ["A", "LONG"],
        [
          ["wide cell", "x"],
          ["y", ""],
        ],
      ),
      ["A          LONG", "wide cell  x", "y"],
    );
  });
});
