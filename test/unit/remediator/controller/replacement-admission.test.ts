import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { ReplacementAdmission } from "../../../../src/remediator/controller/admission/replacement-admission.ts";

const TIME = "2026-01-01T00:00:00Z";

function remediation(name: string, status: BareMetalRemediationStatus, machines = "ns"): BareMetalRemediation {
  const machine = {
    apiVersion: "cluster.x-k8s.io/v1beta2",
    kind: "Machine",
    namespace: machines,
    name,
    uid: `m-${name}`,
  };
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { namespace: machines, name, uid: name, resourceVersion: "1" },
    spec: bareMetalRemediationSpecSchema.parse({ strategy: { type: "Escalate", via: "MachineDeletion" } }),
    status: { machine, ...status },
  };
}

function attempt(kind: "Reboot" | "Reprovision"): NonNullable<BareMetalRemediationStatus["attempt"]> {
  const times = { actionAt: TIME, startedAt: TIME, deadline: TIME };
  return { id: "a", kind, action: "ForceOff", sent: true, done: true, bootOverride: false, ...times };
}

const WAITING = { phase: "Verifying", attempt: attempt("Reprovision") };
const REPLACING = { phase: "Provisioning", attempt: attempt("Reprovision") };

/** Whether the first of the remediations is admitted. */
function granted(...all: BareMetalRemediation[]): boolean {
  const [first] = all;
  if (first === undefined) throw new Error("no remediation");
  return new ReplacementAdmission(() => all).ask(first).granted;
}

describe("the admission to replace a Machine", () => {
  it("the admission to replace a Machine is given to one remediation at a time, from the stored status, so a restart keeps it", () => {
    assert.equal(granted(remediation("a", WAITING), remediation("b", REPLACING)), false);
    assert.equal(granted(remediation("a", WAITING), remediation("b", { ...REPLACING, phase: "PoweringOff" })), false);
  });

  it("the admission to replace a Machine names who has it", () => {
    const [a, b] = [remediation("a", WAITING), remediation("b", REPLACING)];
    assert.deepEqual(new ReplacementAdmission(() => [a, b]).ask(a), { granted: false, by: "ns/b" });
  });

  it("the admission to replace a Machine belongs to no remediation that reboots, waits, undoes or has ended", () => {
    for (const status of [
      { phase: "PoweringOff", attempt: attempt("Reboot") },
      WAITING,
      { ...REPLACING, phase: "Undoing" },
      { ...REPLACING, phase: "Succeeded" },
      { ...REPLACING, phase: "Failed" },
    ]) {
      assert.equal(granted(remediation("a", WAITING), remediation("b", status)), true, status.phase);
    }
  });

  it("the admission to replace a Machine is had in another namespace at the same time", () => {
    assert.equal(granted(remediation("a", WAITING), remediation("b", REPLACING, "other")), true);
  });

  it("the admission to replace a Machine is kept by the remediation that got it, before its start is stored, until it has ended", () => {
    let all = [remediation("a", WAITING), remediation("b", WAITING)];
    const admissions = new ReplacementAdmission(() => all);
    const ask = (index: number): boolean => {
      const asking = all[index];
      if (asking === undefined) throw new Error("no remediation");
      return admissions.ask(asking).granted;
    };
    assert.equal(ask(0), true);
    assert.equal(ask(1), false);
    assert.equal(ask(0), true);
    all = [remediation("a", { ...WAITING, phase: "Failed" }), remediation("b", WAITING)];
    assert.equal(ask(1), true);
  });
});
