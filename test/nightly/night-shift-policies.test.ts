import { after, before, describe, test } from "node:test";
import type { Night } from "../e2e/night.ts";
import { startNight } from "../e2e/night.ts";

// Faults of a night on call that other administrators cause: admission policies that refuse what a fence needs.

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
/** A remediation counts as not started 60 s after it was due. */
const NOT_STARTED_MS = 120_000;

void describe("the night shift with policies of others", () => {
  let night: Night;
  before(async () => {
    night = await startNight();
  });
  after(() => night?.stop());

  const refuse = async (name: string, rule: object, expression: string): Promise<void> => {
    const kind = "ValidatingAdmissionPolicy";
    const { api } = night.world;
    await api.create(`${ADMISSION}/validatingadmissionpolicies`, {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind,
      metadata: { name },
      spec: {
        matchConstraints: { resourceRules: [{ apiVersions: ["*"], ...rule }] },
        validations: [{ expression, message: "not here" }],
      },
    });
    await api.create(`${ADMISSION}/validatingadmissionpolicybindings`, {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: `${kind}Binding`,
      metadata: { name },
      spec: { policyName: name, validationActions: ["Deny"] },
    });
    // The API server enforces the policy with a delay.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
  };
  const allow = async (name: string): Promise<void> => {
    await night.world.api.delete(`${ADMISSION}/validatingadmissionpolicybindings/${name}`);
    await night.world.api.delete(`${ADMISSION}/validatingadmissionpolicies/${name}`);
  };

  void test("the night shift sees a policy that refuses the taint of a fence", { timeout: 400_000 }, (t) =>
    night.play(t, [
      {
        name: "policy refuses the taint",
        node: "worker-2",
        says: "no ApiFailing",
        alert: "IronfenceRemediationHeld",
        labels: { reason: "ApiFailing" },
        make: async () => {
          const taints = "object.spec.taints.exists(taint, taint.key == 'node.kubernetes.io/out-of-service')";
          const rule = { apiGroups: [""], resources: ["nodes"], operations: ["UPDATE"] };
          await refuse("no-taint", rule, `!has(object.spec.taints) || !${taints}`);
          night.world.rack.host("worker-2").hang();
        },
        mend: () => allow("no-taint"),
      },
    ]),
  );

  void test("the night shift sees a policy that refuses remediations", { timeout: 400_000 }, (t) =>
    night.play(t, [
      {
        name: "policy refuses remediations",
        node: "worker-1",
        says: "no NotStarted",
        alert: "IronfenceNodeNotStarted",
        shownMs: NOT_STARTED_MS,
        make: async () => {
          const rule = { apiGroups: ["ironfence.io"], resources: ["baremetalremediations"], operations: ["CREATE"] };
          await refuse("no-remediation", rule, "false");
          night.world.rack.host("worker-1").hang();
        },
        mend: () => allow("no-remediation"),
      },
    ]),
  );
});
