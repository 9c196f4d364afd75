import { after, before, describe, test } from "node:test";
import { HEALTH_CHECK } from "../../hack/e2e/scenario.ts";
import { repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests } from "../../hack/lib/apply.ts";
import { REMEDIATION_ATTEMPTS } from "../../src/api/names/annotations.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { Night } from "../e2e/night.ts";
import { REMEDIATIONS, startNight, WORKERS } from "../e2e/night.ts";

// Further faults of a night on call, which take minutes. test/e2e/night-shift.test.ts has the first nine.

void describe("the night shift", () => {
  let night: Night;
  before(async () => {
    night = await startNight();
  });
  after(() => night?.stop());
  const patchCheck = (change: object): Promise<unknown> => night.world.api.mergePatch(HEALTH_CHECK, change);

  void test("the night shift sees a failed remediation that was left", { timeout: 300_000 }, async (t) => {
    const { api } = night.world;
    await night.patchDevice("worker-1", undefined, "bmc-wrong");
    await night.answersAre("worker-1", "no AuthenticationFailed");
    await night.play(t, [
      {
        name: "failed remediation left behind",
        node: "worker-1",
        says: "no BMCAuthenticationFailed",
        alert: "IronfenceRemediationFailed",
        labels: { reason: "BMCAuthenticationFailed" },
        make: () =>
          api.create(REMEDIATIONS, {
            apiVersion: "ironfence.io/v1alpha1",
            kind: "BareMetalRemediation",
            metadata: { name: "worker-1" },
            spec: {},
          }),
        mend: async () => {
          await night.patchDevice("worker-1");
          await api.delete(`${REMEDIATIONS}/worker-1`);
        },
      },
    ]);
  });

  void test(
    "the night shift sees a threshold that prevents a remediation, and attempts that are used up",
    { timeout: 400_000 },
    async (t) => {
      const attempts = (): string => {
        const nowMs = systemClock.nowMs();
        return Array.from({ length: 10 }, (_, index) => `r${index}@${toTime(nowMs - index * 60_000)}`).join(",");
      };
      const annotate = (value: string | null): Promise<unknown> =>
        patchCheck({ metadata: { annotations: { [REMEDIATION_ATTEMPTS]: value } } });
      await night.play(t, [
        {
          name: "threshold holds",
          node: "worker-1",
          says: "no ThresholdHolds",
          alert: "IronfenceHealthCheckHeld",
          labels: { reason: "ThresholdHolds" },
          make: async () => {
            await patchCheck({ spec: { minHealthy: WORKERS.length } });
            night.world.rack.host("worker-5").hang();
          },
          mend: async () => {
            await annotate(JSON.stringify({ "worker-5": attempts() }));
            await patchCheck({ spec: { minHealthy: 1 } });
          },
        },
      ]);
      await night.play(t, [
        {
          name: "attempt budget used up",
          node: "worker-5",
          says: "no AttemptBudgetSpent",
          alert: "IronfenceAttemptsSpent",
          make: () => Promise.resolve(),
          mend: () => annotate(null),
        },
      ]);
    },
  );

  void test(
    "the night shift sees that no agent leads, and that the leader lacks the permissions of a family",
    { timeout: 400_000 },
    async (t) => {
      const [agent] = night.world.agents;
      await night.play(t, [
        {
          name: "leader gone",
          node: "worker-1",
          says: "no NoAgent",
          alert: "IronfenceAbsent",
          make: async () => agent?.kill(),
          mend: () => night.world.startAgent([`--metrics-bind-address=${night.metrics}`]),
        },
      ]);
      await night.world.agents[1]?.stop();
      await night.play(t, [
        {
          name: "permissions of a family taken away",
          node: "worker-1",
          says: "no NotReady",
          alert: "IronfenceHostCannotBeFenced",
          labels: { reason: "BareMetalHostsUnreadable" },
          make: () =>
            night.world.startAgent([
              `--metrics-bind-address=${night.metrics}`,
              "--families=node-health-check,bare-metal-host",
            ]),
          mend: () => applyManifests(night.world.api, repositoryPath("deploy/families/bare-metal-host")),
        },
        {
          name: "leader not ready for the same reason",
          node: "worker-2",
          says: "no NotReady",
          alert: "IronfenceNotReady",
          make: () => Promise.resolve(),
          mend: () => Promise.resolve(),
        },
      ]);
    },
  );
});
