import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { REASONS } from "../../../src/remediator/machine/model/decision/reasons.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(`${ROOT}/${path}`, "utf8");
const PAGE = "docs/reference/events.md";

/** Where the reasons of recorded Events are defined. */
interface Source {
  /** Files that record. */
  records: string;
  /** Files that name the reasons. */
  names: string;
  /** Patterns whose groups are reasons, or a type whose members are reasons. */
  patterns: readonly RegExp[];
}

const RECORDED = /events\.record\(\{[^}]*?reason: "(\w+)"/g;
const RECORDED_AS = /type: "Warning", reason: "(\w+)"/g;
const UNION_OF_REASONS = /reason: ((?:"\w+"(?: \| )?)+)/g;
const SOURCES: readonly Source[] = [
  {
    records: "src/remediator/controller/store-status.ts",
    names: "src/remediator/machine/**/*.ts",
    patterns: [
      /^ +step: "(\w+)"/gm,
      /^ +step: \w+ \? ("\w+" : "\w+")/gm,
      /: \{ step: "(\w+)", message/g,
      /beginPowerOn\(snapshot, now, "(\w+)"/g,
      /CAUSE_OF_DEATH = "(\w+)"/g,
      /type: "WorkloadsReleased"[^}]*?reason: "(\w+)"/g,
    ],
  },
  {
    records: "src/detector/nodes/controller.ts",
    names: "src/detector/nodes/decide/decision.ts",
    patterns: [/type NodeEventReason =([^;]*);/g],
  },
  {
    records: "src/detector/{nodes,machines}/controller.ts",
    names: "src/detector/shared/shell/health-check-shell.ts",
    patterns: [/reason: "(\w+)"/g],
  },
  {
    records: "src/detector/machines/controller.ts",
    names: "src/detector/machines/decide/decision.ts",
    patterns: [/type MachineEventReason =([^;]*);/g],
  },
  {
    records: "src/remediator/requests/metal3-remediation.ts",
    names: "src/{api/metal3/metal3-remediation,remediator/requests/{metal3-remediation,decide-metal3-remediation}}.ts",
    patterns: [
      /const REFUSALS = ([^;]*);/g,
      /type Metal3Phase = ([^;]*);/g,
      /phase === "Deleting machine" \? "(\w+)"/g,
      /do: "refuse", (reason: "\w+")/g,
    ],
  },
  {
    records: "src/remediator/requests/okd-machine.ts",
    names: "src/remediator/requests/{okd-machine,decide-okd-machine}.ts",
    patterns: [UNION_OF_REASONS, /#report\(machine, "Normal", "(\w+)"/g],
  },
  {
    records: "src/remediator/probes/probe-hosts.ts",
    names: "src/remediator/probes/probe-hosts.ts",
    patterns: [/reason: DeviceFailure \| ([^;]*);/g],
  },
  {
    records: "src/cli/agent/withheld-remediations.ts",
    names: "src/cli/agent/withheld-remediations.ts",
    patterns: [RECORDED_AS],
  },
  { records: "src/cli/agent/installation.ts", names: "src/cli/agent/installation.ts", patterns: [/#warn\("(\w+)"/g] },
  {
    records: "src/cli/cluster/unread-versions.ts",
    names: "src/cli/cluster/unread-versions.ts",
    patterns: [/type: "Warning", reason: "(\w+)"/g],
  },
  // These files have the reasons in the calls.
  {
    records: "src/remediator/{controller,orphans,probes}/**/*.ts",
    names: "src/remediator/{controller,orphans,probes}/**/*.ts",
    patterns: [RECORDED],
  },
];
/** Words around the reasons; the phase `Deleting machine` has a reason without a space. */
const NOT_REASONS: ReadonlySet<string> = new Set(["Deleting", "machine", "reason", "as", "const"]);

function reasonsOf({ names, patterns }: Source): string[] {
  const texts = globSync(names, { cwd: ROOT }).map(read);
  return patterns.flatMap((pattern) => {
    const found = texts.flatMap((text) => [...text.matchAll(pattern)].flatMap(([, group = ""]) => group));
    assert.ok(found.length > 0, `${names} has nothing like ${pattern}`);
    return found.flatMap((group) => group.match(/\w+/g) ?? []).filter((name) => !NOT_REASONS.has(name));
  });
}

/** Reason and text of each section of the page. */
function sections(): [reason: string, text: string][] {
  return read(PAGE)
    .split(/^### /m)
    .slice(1)
    .map((section) => [section.split("\n")[0] ?? "", section.split("\n").slice(2).join("\n").split(/^## /m)[0] ?? ""]);
}

describe("docs/reference/events.md", () => {
  it("docs/reference/events.md knows every file that records Events", () => {
    const recording = globSync("src/**/*.ts", { cwd: ROOT }).filter((file) => read(file).includes("events.record("));
    const known = new Set(SOURCES.flatMap(({ records }) => globSync(records, { cwd: ROOT })));
    assert.deepEqual(
      recording.filter((file) => !known.has(file)),
      [],
    );
  });

  it("docs/reference/events.md has a section for every reason that is recorded, and for no other", () => {
    // Reasons of remediations that are steps are on another page.
    const explained = new Set<string>(REASONS);
    const documented = sections().map(([reason]) => reason);
    const recorded = new Set(SOURCES.flatMap(reasonsOf));
    assert.ok(recorded.size > 70, String(recorded.size));
    assert.deepEqual(
      [...recorded].filter((reason) => !documented.includes(reason) && !explained.has(reason)).sort(),
      [],
      "not explained",
    );
    assert.deepEqual(
      documented.filter((reason) => !recorded.has(reason)),
      [],
      "not recorded",
    );
    assert.equal(new Set(documented).size, documented.length, "explained twice");
  });

  it("docs/reference/events.md says of each its type and the object, and what to do about a Warning", () => {
    for (const [reason, text] of sections()) {
      assert.match(text, /^(?:Normal|Warning), on (?:the|each|a) [A-Z]/, reason);
      if (text.startsWith("Warning") && reason !== "StormRecoveryCooldownStarted") {
        assert.ok(text.trim().split("\n\n").length >= 2, `${reason}: what to do?`);
      }
    }
  });
});
