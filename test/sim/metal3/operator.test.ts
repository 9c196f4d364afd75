import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../../src/api/kubernetes/core-types.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { NAMESPACE } from "../cluster.ts";
import { Metal3World } from "./world.ts";
import { readyOf } from "../../../src/remediator/hosts/fencing-target/target-store.ts";

const FOREIGN = "reboot.metal3.io/metal3-remediation-4711";

describe("a BareMetalHost that two Nodes claim to run on", () => {
  for (const asked of ["n9", "n1"]) {
    it(`a BareMetalHost that two Nodes claim to run on is not powered off for node ${asked} until one of them is deleted`, () =>
      Metal3World.run({}, async (world) => {
        const { spec, status } = world.node("n1") ?? assert.fail();
        const { providerID } = spec;
        world.create(NODES, { name: "n9" }, { spec: { providerID }, status: { nodeInfo: status.nodeInfo } });
        await world.hang();
        world.remediate(asked);
        await world.until("it has failed", () => world.remediation(asked)?.status?.phase === "Failed");
        const verdict = world.remediation(asked)?.status?.conditions?.find(({ type }) => type === "Succeeded");
        assert.equal(verdict?.reason, "Ambiguous");
        for (const what of ["Node n9", "Node n1", "BareMetalHost metal3/n1"]) {
          assert.ok(verdict.message.includes(what), verdict.message);
        }
        assert.deepEqual(world.powerLog, []);
        world.assertClean();
        world.server.collection(NODES).delete({ name: "n9" });
        world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: asked });
        await world.until("it is gone", () => world.remediation(asked) === undefined);
        world.remediate("n1");
        await world.phase("Succeeded");
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      }));
  }
});

describe("an operator of BareMetalHosts", () => {
  it("the operator of BareMetalHosts is never bypassed: while it does not run the host stays on, the verdict says why, and no mark of ironfence is left", () =>
    Metal3World.run({}, async (world) => {
      await world.hang();
      world.operator.setAway(true);
      world.remediate("n1", { retryLimit: 0, powerOffTimeout: "60s", powerOnTimeout: "60s" });
      await world.phase("Failed");
      assert.deepEqual(world.powerLog, []);
      const { reason, message } = world.condition("Succeeded");
      assert.equal(reason, "PowerOffTimeout");
      assert.match(
        message,
        /its BMC says On; the operator of BareMetalHost metal3\/n1 has been asked to keep it off, and reports poweredOn true/,
      );
      world.assertClean();
    }));

  it("a host whose operator does not run at the power-on stays off: ironfence withdraws its request to be off, and the verdict says what is missing", () =>
    Metal3World.run({}, async (world) => {
      await world.hang();
      world.remediate("n1", { retryLimit: 0, powerOnTimeout: "60s" });
      await world.phase("PoweringOn");
      world.operator.setAway(true);
      await world.phase("Failed");
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      assert.match(world.condition("Succeeded").message, /the operator of BareMetalHost metal3\/n1 must power it on/);
      world.assertClean();
      world.operator.setAway(false);
      await world.until("it is on as soon as the operator is back", () => world.rack.host("n1").power === "On");
    }));

  it("a fence continues if the operator of BareMetalHosts restarts during it", () =>
    Metal3World.run({}, async (world) => {
      await world.hang();
      world.remediate("n1");
      await world.phase("PoweringOff");
      await world.clock.advance(1_000);
      world.operator.restart();
      await world.phase("Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a power-on by Metal3's operator that ironfence did not request voids the proof: the taint is removed, and the host is kept off and proven off again", () =>
    Metal3World.run({}, async (world) => {
      await world.hangWithPod();
      const taints: boolean[] = [];
      world.server.onChange(({ object }) => {
        if (object.kind === "Node" && object.metadata.name === "n1")
          taints.push(JSON.stringify(object).includes("out-of-service"));
      });
      world.holdPod();
      world.remediate("n1");
      await world.phase("Releasing");
      world.otherClientOrders("n1", "On");
      await world.phase("PoweringOff");
      assert.equal(taints.at(-1), false);
      await world.phase("Releasing");
      world.freePod();
      await world.phase("Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On", "n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("an operator of BareMetalHosts whose off request a user removes ends the proof at once, before it has powered the host on", () =>
    Metal3World.run({}, async (world) => {
      await world.hangWithHeldPod();
      world.remediate("n1", { drainTimeout: "60s" });
      await world.phase("Releasing");
      world.operator.setAway(true);
      world.annotate(Object.fromEntries(world.offRequests().map((key) => [key, null])));
      await world.phase("PoweringOff");
      assert.equal(world.rack.host("n1").power, "Off");
      world.operator.setAway(false);
      await world.phase("Releasing");
      assert.equal(world.offRequests().length, 1);
      await world.phase("Succeeded");
      world.assertClean();
    }));

  it("off requests of other clients on a BareMetalHost stay, keep the host off, and are named in the verdict", () =>
    Metal3World.run({}, async (world) => {
      await world.hang();
      world.remediate("n1", { retryLimit: 0, powerOnTimeout: "60s" });
      await world.phase("PoweringOff");
      world.annotate({ [FOREIGN]: '{"mode":"hard"}' });
      await world.phase("Failed");
      const { reason, message } = world.condition("Succeeded");
      assert.equal(reason, "PowerOnTimeout");
      assert.match(message, new RegExp(`${FOREIGN}, which ironfence does not remove, keeps it off as well`));
      assert.equal(world.bmh().metadata.annotations?.[FOREIGN], '{"mode":"hard"}');
      world.assertClean();
    }));
});

/** Fences n1 up to a phase. Its pod is held up to the end of the release. */
async function fencedUpTo(world: Metal3World, phase: string): Promise<void> {
  await world.hangWithHeldPod();
  world.remediate("n1");
  if (phase !== "PoweringOff" && phase !== "Releasing") world.freePod();
  await world.phase(phase);
}

describe("an abort", () => {
  for (const phase of ["PoweringOff", "Releasing"]) {
    it(`an abort in ${phase} withdraws the off request and leaves the host on`, () =>
      Metal3World.run({}, async (world) => {
        await fencedUpTo(world, phase);
        world.abort();
        await world.until("it is gone", () => world.remediation("n1") === undefined);
        world.assertClean();
        await world.until("the host is on", () => world.rack.host("n1").power === "On");
        await world.clock.advance(120_000);
        assert.equal(world.rack.host("n1").power, "On", "and stays on");
      }));
  }
});

describe("an agent that is killed", () => {
  for (const phase of ["PoweringOff", "Releasing", "PoweringOn", "Rejoining"]) {
    it(`an agent that is killed in ${phase} and restarted orders one power cycle in all, once`, () =>
      Metal3World.run({}, async (world) => {
        await fencedUpTo(world, phase);
        await world.killAgent();
        await world.clock.advance(10_000);
        world.freePod();
        world.startAgent();
        await world.phase("Succeeded");
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.assertClean();
      }));
  }
});

describe("an agent that has not read its hosts yet", () => {
  it("an agent that has not read its hosts yet treats none of them as deleted", () =>
    Metal3World.run({}, async (world) => {
      await fencedUpTo(world, "Releasing");
      await world.killAgent();
      const match = { client: "agent", pathPrefix: "/apis/metal3.io/v1alpha1/baremetalhosts" };
      world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 20_000 } });
      world.startAgent();
      await world.clock.advance(15_000);
      world.freePod();
      await world.phase("Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a remediation that is taken away by force", () => {
  it("a remediation that is taken away by force leaves its host kept off, and a warning; the next one takes it over", () =>
    Metal3World.run({}, async (world) => {
      await fencedUpTo(world, "Releasing");
      await world.killAgent();
      world.abort();
      world.dropFinalizers();
      world.startAgent();
      await world.until("an Event reports it", () =>
        world.notes.some(({ note }) => note.includes("is kept off for BareMetalRemediation")),
      );
      assert.equal(
        world.notes.filter(
          ({ reason, regarding }) => reason === "RemediationLost" && regarding.kind === "BareMetalHost",
        ).length,
        1,
      );
      assert.equal(world.offRequests().length, 1);
      world.freePod();
      world.remediate("n1", {}, "second");
      await world.phase("Succeeded", "second");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a family that is switched off during a fence", () => {
  it("a family that is switched off during a fence leaves the host off without our taint; the verdict says what to do, and the next remediation takes it over", () =>
    // If the family is not served, the agent cannot release the host.
    Metal3World.run({ breaks: ["S3", "S10"] }, async (world) => {
      await world.hangWithHeldPod();
      world.remediate("n1", { retryLimit: 0 });
      await world.phase("Releasing");
      await world.killAgent();
      world.startAgent([]);
      await world.phase("Failed");
      const [request = ""] = world.offRequests();
      const { reason, message } = world.condition("Succeeded");
      assert.equal(reason, "TargetGone");
      assert.ok(message.includes("or the family bare-metal-host is not served any more"), message);
      assert.ok(message.includes(`remove annotation ${request} from BareMetalHost metal3/n1 by hand`), message);
      assert.equal(JSON.stringify(world.node("n1")).includes("out-of-service"), false);
      assert.equal(world.rack.host("n1").power, "Off");
      await world.killAgent();
      world.startAgent();
      await world.until("an Event reports it", () =>
        world.notes.some(({ reason, regarding }) => reason === "RemediationLost" && regarding.kind === "BareMetalHost"),
      );
      world.freePod();
      world.remediate("n1", {}, "second");
      await world.phase("Succeeded", "second");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a host that serves another machine now", () => {
  it("a host that serves another Machine now is released, and its remediation ends", () =>
    Metal3World.run({}, async (world) => {
      await world.hangWithHeldPod();
      world.remediate("n1", { retryLimit: 0 });
      await world.phase("Releasing");
      world.edit({ spec: { consumerRef: { name: "another-machine" } } });
      await world.phase("Failed");
      assert.equal(world.condition("Succeeded").reason, "TargetGone");
      assert.match(world.condition("Succeeded").message, /used by Metal3Machine metal3\/another-machine/);
      world.assertClean();
      await world.until("the host is on", () => world.rack.host("n1").power === "On");
    }));
});

describe("two remediations of one host", () => {
  it("two remediations of one host hand it over: the second proves it off again, and its power-on removes the off request that the first has left", () =>
    Metal3World.run({}, async (world) => {
      await world.hangWithHeldPod();
      world.remediate("n1", { retryLimit: 0 });
      await world.phase("Releasing");
      world.remediate("n1", {}, "second");
      await world.until("the second waits", () => world.remediation("second")?.status?.phase === "Resolving");
      const [first] = world.offRequests();
      world.abort();
      await world.phase("Releasing", "second");
      world.freePod();
      assert.equal(world.offRequests().length, 1);
      assert.notEqual(world.offRequests()[0], first);
      await world.phase("Succeeded", "second");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"], "it was never let go in between");
      world.assertClean();
    }));
});

describe("a detached BareMetalHost", () => {
  it("a BareMetalHost that is detached from its operator is powered by ironfence alone, without an off request", () =>
    Metal3World.run({ annotations: { "baremetalhost.metal3.io/detached": "" } }, async (world) => {
      await world.until("it is detached", () => world.bmh().operationalStatus === "detached");
      await world.hang();
      const counts: number[] = [];
      world.server.onChange(() => counts.push(world.offRequests().length));
      world.remediate("n1");
      await world.phase("Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(world.devices.calls.filter(({ call }) => call === "ForceOff" || call === "On").length, 2);
      assert.equal(Math.max(...counts), 0);
      world.assertClean();
    }));

  it("a BareMetalHost that is attached to its operator again during a fence is powered by requests from then on", () =>
    Metal3World.run({ annotations: { "baremetalhost.metal3.io/detached": "" } }, async (world) => {
      world.createPod("n1", "db");
      await world.until("it is detached", () => world.bmh().operationalStatus === "detached");
      await world.hang();
      world.holdPod();
      world.remediate("n1");
      await world.phase("Releasing");
      world.annotate({ "baremetalhost.metal3.io/detached": null });
      await world.until("it is asked off", () => world.offRequests().length === 1);
      world.freePod();
      await world.phase("Succeeded");
      world.assertClean();
    }));
});

describe("a host that must not be fenced as it is", () => {
  it("a BareMetalHost is not fenced while it is paused, and is fenced after that", () =>
    Metal3World.run({ annotations: { "baremetalhost.metal3.io/paused": "" } }, async (world) => {
      await world.hang();
      world.remediate("n1", { powerOffTimeout: "30s" });
      await world.clock.advance(300_000);
      assert.equal(world.condition("Processing").reason, "Maintenance");
      assert.match(world.condition("Processing").message, /paused/);
      assert.deepEqual(world.powerLog, []);
      world.annotate({ "baremetalhost.metal3.io/paused": null });
      await world.phase("Succeeded");
    }));

  for (const [reason, options] of [
    ["PowerOffDisabled", { spec: { disablePowerOff: true } }],
    ["HostOffline", { spec: { online: false } }],
  ] as const) {
    it(`a BareMetalHost that must not be fenced is refused as ${reason}`, () =>
      Metal3World.run(options, async (world) => {
        await world.until("it is not Ready", () => reason !== "HostOffline" || !world.isReady("n1"));
        const orders = [...world.powerLog];
        if (reason !== "HostOffline") await world.hang();
        world.remediate("n1", { retryLimit: 0, powerOffTimeout: "30s" });
        await world.phase("Failed");
        assert.equal(world.condition("Succeeded").reason, reason);
        assert.deepEqual(world.powerLog, orders);
        world.assertClean();
      }));
  }

  it("a BareMetalHost whose BMC belongs to another host is refused, and a user is warned", () =>
    Metal3World.run({}, async (world) => {
      await world.hang();
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.remediate("n1", { retryLimit: 0 });
      await world.phase("Failed");
      assert.equal(world.condition("Succeeded").reason, "IdentityMismatch");
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));

  it("a BareMetalHost is refused if a FencingTarget exists for the same host", () =>
    Metal3World.run({}, async (world) => {
      world.createTarget("n1", world.rack.host("n1").spec.systemUUID);
      await world.hang();
      world.remediate("n1", { retryLimit: 0, powerOffTimeout: "30s" });
      await world.phase("Failed");
      const { reason, message } = world.condition("Succeeded");
      assert.equal(reason, "Ambiguous");
      assert.match(
        message,
        /FencingTarget ironfence\/n1 and BareMetalHost metal3\/n1 .* delete the FencingTarget, or detach/,
      );
      assert.deepEqual(world.powerLog, []);
      const ready = readyOf(world.target("n1")?.status);
      assert.deepEqual([ready?.status, ready?.reason, ready?.message], ["False", "Ambiguous", message]);
    }));

  for (const phase of ["PoweringOff", "Releasing", "PoweringOn"]) {
    it(`a BareMetalHost whose operator takes a FencingTarget's host back in ${phase} is powered by that operator alone`, () =>
      Metal3World.run({ annotations: { "baremetalhost.metal3.io/detached": "" } }, async (world) => {
        world.createPod("n1", "db");
        world.createTarget("n1", world.rack.host("n1").spec.systemUUID);
        await world.until("it is detached", () => world.bmh().operationalStatus === "detached");
        await world.until("it is ready", () => readyOf(world.target("n1")?.status)?.status === "True");
        await world.hang();
        if (phase === "Releasing") world.holdPod();
        world.remediate("n1");
        await world.phase(phase);
        const orders = (): number =>
          world.devices.calls.filter(({ call }) => call === "ForceOff" || call === "On").length;
        world.annotate({ "baremetalhost.metal3.io/detached": null });
        const ordered = orders();
        await world.phase("Failed");
        const { reason, message } = world.condition("Succeeded");
        assert.equal(reason, "HostAttached");
        assert.match(
          message,
          /^the operator of BareMetalHost metal3\/n1 now powers the host of FencingTarget ironfence\/n1/,
        );
        assert.equal(orders(), ordered, "no order after it was seen");
        assert.equal(world.rack.host("n1").power, "On", "its operator has powered it on");
        world.assertClean();
      }));
  }

  describe("a host that must not be fenced as it is whose BareMetalHosts the agent has not read yet", () => {
    const late = (world: Metal3World, delayMs: number): void => {
      const match = { client: "agent", pathPrefix: "/apis/metal3.io/v1alpha1/baremetalhosts" };
      world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs } });
    };

    it("a FencingTarget for the host of a BareMetalHost waits until BareMetalHosts are read, and is not used then", () =>
      Metal3World.run({}, async (world) => {
        world.createTarget("n1", world.rack.host("n1").spec.systemUUID);
        await world.hang();
        await world.killAgent();
        late(world, 25_000);
        world.startAgent();
        world.remediate("n1", { retryLimit: 0 });
        const said = (): string =>
          world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Processing")?.message ?? "";
        await world.until("it says so", () => said().includes("BareMetalHosts are not read yet"));
        await world.phase("Failed");
        const { reason, message } = world.condition("Succeeded");
        assert.equal(reason, "Ambiguous");
        assert.match(message, /FencingTarget ironfence\/n1 and BareMetalHost metal3\/n1 describe the same host/);
        assert.deepEqual(world.powerLog, []);
        world.assertClean();
      }));

    it("every FencingTarget has a reason that says that the agent may not read BareMetalHosts, until the permissions are granted", () =>
      Metal3World.run({ annotations: { "baremetalhost.metal3.io/detached": "" } }, async (world) => {
        world.createTarget("n1", world.rack.host("n1").spec.systemUUID);
        const ready = () => readyOf(world.target("n1")?.status);
        await world.until("it is ready", () => ready()?.status === "True");
        await world.killAgent();
        const match = { client: "agent", pathPrefix: "/apis/metal3.io/v1alpha1/baremetalhosts" };
        const give = world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
        world.startAgent();
        await world.until("it says so", () => ready()?.reason === "BareMetalHostsUnreadable", 30_000);
        assert.equal(ready()?.status, "False");
        assert.match(ready()?.message ?? "", /cannot read BareMetalHosts.*apply deploy\/families\/bare-metal-host/);
        give();
        await world.until("it is ready again", () => ready()?.status === "True", 60_000);
      }));

    it("a host gets no order before the BareMetalHosts are read: one of them may have taken it back while no agent ran", () =>
      Metal3World.run({ annotations: { "baremetalhost.metal3.io/detached": "" } }, async (world) => {
        world.createPod("n1", "db");
        world.createTarget("n1", world.rack.host("n1").spec.systemUUID);
        await world.until("it is detached", () => world.bmh().operationalStatus === "detached");
        await world.until("it is ready", () => readyOf(world.target("n1")?.status)?.status === "True");
        await world.hang();
        world.holdPod();
        world.remediate("n1");
        await world.phase("Releasing");
        const orders = (): number =>
          world.devices.calls.filter(({ call }) => call === "ForceOff" || call === "On").length;
        const ordered = orders();
        await world.killAgent();
        world.annotate({ "baremetalhost.metal3.io/detached": null });
        await world.until("it is attached", () => world.bmh().operationalStatus === "OK");
        late(world, 20_000);
        world.startAgent();
        await world.phase("Failed");
        assert.equal(world.condition("Succeeded").reason, "HostAttached");
        assert.equal(orders(), ordered);
        world.assertClean();
      }));
  });

  it("a FencingTarget of a host that a BareMetalHost's operator powers stays Ready=False, also across a restart", () =>
    Metal3World.run({}, async (world) => {
      const seen: string[] = [];
      world.server.onChange(({ object }) => {
        const said = object.kind === "FencingTarget" ? readyOf((object as FencingTarget).status) : undefined;
        if (said !== undefined && seen.at(-1) !== said.reason) seen.push(said.reason);
      });
      world.createTarget("n1", world.rack.host("n1").spec.systemUUID);
      await world.until("it is not ready", () => seen.length > 0);
      const match = { client: "agent", pathPrefix: "/apis/metal3.io/v1alpha1/baremetalhosts" };
      await world.killAgent();
      world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 20_000 } });
      world.startAgent();
      await world.clock.advance(600_000);
      assert.deepEqual(seen, ["Ambiguous"]);
      world.annotate({ "baremetalhost.metal3.io/detached": "" });
      await world.until("it is ready", () => readyOf(world.target("n1")?.status)?.status === "True");
    }));
});

describe("a host whose status is trusted", () => {
  const trusted = { annotations: { "ironfence.io/trust-power-status": "true" } };

  it("a host whose status is trusted is proven off by what its operator reports after our request, without a call to its BMC", () =>
    Metal3World.run(trusted, async (world) => {
      await world.hangWithPod();
      world.remediate("n1");
      await world.phase("Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.deepEqual(world.devices.calls, []);
      world.assertClean();
    }));

  it("a host whose status is trusted is not proven off by a poweredOn that was false before", () =>
    Metal3World.run({ ...trusted, operator: { mirrorDelayMs: 10_000_000 } }, async (world) => {
      world.edit({ status: { poweredOn: false } }, "status");
      await world.hang();
      world.remediate("n1", { retryLimit: 0, powerOffTimeout: "60s", powerOnTimeout: "60s" });
      await world.phase("Failed");
      const { reason, message } = world.condition("Succeeded");
      assert.equal(reason, "PowerOffTimeout");
      assert.match(message, /poweredOn false, as before our request/);
      assert.ok(!world.phases.includes("Releasing"));
      world.assertClean();
    }));
});
