import { after, before, describe, test } from "node:test";
import { HEALTH_CHECK, TARGETS } from "../../hack/e2e/scenario.ts";
import { applyObject } from "../../hack/lib/apply.ts";
import type { Night } from "./night.ts";
import { startNight, TEMPLATES, WORKERS } from "./night.ts";

// The first nine faults of a night on call. The other faults are in test/nightly.

void describe("the night shift", () => {
  let night: Night;
  before(async () => {
    night = await startNight();
  });
  after(() => night?.stop());

  void test("the night shift sees six faults of targets, everywhere alike", { timeout: 300_000 }, (t) =>
    night.play(t, [
      {
        name: "wrong BMC password",
        node: "worker-1",
        says: "no AuthenticationFailed",
        alert: "IronfenceHostCannotBeFenced",
        labels: { reason: "AuthenticationFailed" },
        make: () => night.patchDevice("worker-1", undefined, "bmc-wrong"),
        mend: () => night.patchDevice("worker-1"),
      },
      {
        name: "BMC unreachable",
        node: "worker-2",
        says: "no Unreachable",
        alert: "IronfenceHostCannotBeFenced",
        labels: { reason: "Unreachable" },
        make: () => night.patchDevice("worker-2", "redfish://127.0.0.1:1/redfish/v1/Systems/1"),
        mend: () => night.patchDevice("worker-2"),
      },
      {
        name: "certificate expired",
        node: "worker-3",
        says: "no TlsUntrusted",
        alert: "IronfenceBmcCertificateExpires",
        labels: { expires: "expired" },
        make: () =>
          night.patchDevice(
            "worker-3",
            night.expired.url.replace(/^https/, "redfish") + night.expired.systemPath("worker-3"),
          ),
        mend: () => night.patchDevice("worker-3"),
      },
      {
        name: "node without a target",
        node: "worker-4",
        says: "no NoTarget",
        alert: "IronfenceNodeUncovered",
        make: () => night.world.api.delete(`${TARGETS}/worker-4`),
        mend: () => applyObject(night.world.api, night.target("worker-4")),
      },
      {
        name: "maintenance forgotten",
        node: "worker-5",
        says: "no Maintenance",
        alert: "IronfenceMaintenance",
        make: () => night.world.api.mergePatch(`${TARGETS}/worker-5`, { spec: { maintenance: true } }),
        mend: () => night.world.api.mergePatch(`${TARGETS}/worker-5`, { spec: { maintenance: false } }),
      },
      {
        name: "target for a node that is missing",
        node: undefined,
        says: "NodeNotFound",
        alert: "IronfenceHostCannotBeFenced",
        labels: { reason: "NodeNotFound" },
        make: () => applyObject(night.world.api, night.target("spare", "worker-9")),
        mend: () => night.world.api.delete(`${TARGETS}/spare`),
      },
    ]),
  );

  void test("the night shift sees a pause that was forgotten", { timeout: 300_000 }, (t) =>
    night.play(t, [
      {
        name: "paused for long",
        node: "worker-1",
        says: "no Paused",
        alert: "IronfencePaused",
        make: () => night.command("pause", "--reason", "a test"),
        mend: () => night.command("resume"),
      },
    ]),
  );

  void test("the night shift sees a threshold that lets no node fail alone", { timeout: 300_000 }, (t) =>
    night.play(t, [
      {
        name: "threshold too high",
        node: "worker-1",
        says: "no ThresholdTooHigh",
        alert: "IronfenceHealthCheckHeld",
        labels: { reason: "ThresholdTooHigh" },
        make: () => night.world.api.mergePatch(HEALTH_CHECK, { spec: { minHealthy: WORKERS.length } }),
        mend: () => night.world.api.mergePatch(HEALTH_CHECK, { spec: { minHealthy: 1 } }),
      },
    ]),
  );

  void test("the night shift sees a template that is missing", { timeout: 300_000 }, (t) =>
    night.play(t, [
      {
        name: "template missing",
        node: "worker-1",
        says: "no RemediationTemplateNotFound",
        alert: "IronfenceHealthCheckDisabled",
        labels: { reason: "RemediationTemplateNotFound" },
        make: () => night.world.api.delete(`${TEMPLATES}/reboot`),
        mend: () => night.world.api.create(TEMPLATES, { ...night.template, metadata: { name: "reboot" } }),
      },
    ]),
  );
});
