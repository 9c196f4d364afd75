import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Lease } from "../../../../src/api/kubernetes/core.ts";
import {
  NOTHING_READ,
  recordFailedReading,
  recordReading,
  recordWhole,
} from "../../../../src/remediator/machine/rules/proof/off-proof.ts";
import { rebootOfThisOutage } from "../../../../src/remediator/machine/rules/proof/reboot-proof.ts";
import { observeNodeLease } from "../../../../src/remediator/machine/rules/outage/lease-silence.ts";
import type { Sibling } from "../../../../src/remediator/machine/model/facts/snapshot.ts";
import { READ_ON, node, observationsAfter, stateOf } from "./snapshots.ts";
import { IN_CONTACT } from "../../../lib/contact.ts";
import { nothingObserved } from "../../../../src/remediator/machine/model/facts/nothing-observed.ts";

const OFF = { state: "Off", raw: "Off" } as const;
const ON = { state: "On", raw: "On" } as const;

describe("an undo", () => {
  it("an undo begins without the last reading: its On may be that of one device while another was turned off", () => {
    const observations = { ...nothingObserved(), power: READ_ON };
    assert.deepEqual(observationsAfter(observations, stateOf("PoweringOff"), stateOf("Undoing")).power, NOTHING_READ);
    assert.deepEqual(observationsAfter(observations, stateOf("Undoing"), stateOf("Undoing")).power, READ_ON);
  });
});

describe("a new attempt", () => {
  const owned = { owned: true, targetUid: "target-uid" } as const;
  const begins = (hostReleased: boolean) =>
    observationsAfter({ ...nothingObserved(), claim: owned, hostReleased }, stateOf("Restoring"), stateOf("Verifying"))
      .claim;

  it("a new attempt has the host that its remediation took", () => assert.equal(begins(false), owned));

  it("a new attempt reads a host again that was given up because the node seemed to be back: another remediation may have it now", () =>
    assert.equal(begins(true), undefined));
});

describe("the proof that a host is off", () => {
  it("the proof that a host is off takes two Off readings in a row", () => {
    const first = recordReading(NOTHING_READ, OFF, 100);
    assert.equal(first.provenAtMs, undefined);
    assert.equal(recordReading(first, OFF, 200).provenAtMs, 200);
  });

  it("the proof that a host is off is not made by readings of all devices if only one of them is off", () => {
    const whole = recordWhole({ ...OFF, runs: true }, 300);
    assert.deepEqual([whole.offReads, whole.offAtMs, whole.provenAtMs], [0, undefined, undefined]);
    assert.equal(recordReading(whole, OFF, 400).provenAtMs, undefined);
  });

  for (const state of ["On", "Changing", "Unknown"] as const) {
    it(`the proof that a host is off is voided by a reading of ${state}`, () => {
      const proven = recordReading(recordReading(NOTHING_READ, OFF, 100), OFF, 200);
      const voided = recordReading(proven, { state, raw: state }, 300);
      assert.equal(voided.provenAtMs, undefined);
      assert.equal(recordReading(voided, OFF, 400).provenAtMs, undefined);
    });
  }

  it("the proof that a host is off is not made by two Offs with a failed reading between them", () => {
    const failed = recordFailedReading(recordReading(NOTHING_READ, OFF, 100), 150);
    const again = recordReading(failed, OFF, 200);
    assert.equal(again.provenAtMs, undefined);
    assert.equal(recordReading(again, OFF, 270).provenAtMs, 270);
  });

  it("the proof that a host is off survives a failed reading for less than five seconds", () => {
    const proven = recordReading(recordReading(NOTHING_READ, OFF, 100), OFF, 200);
    assert.equal(recordFailedReading(proven, 5_199).provenAtMs, 200);
    assert.equal(recordFailedReading(proven, 5_200).provenAtMs, undefined);
  });

  it("the proof that a host is off keeps the time at which it was made", () => {
    const proven = recordReading(recordReading(NOTHING_READ, OFF, 100), OFF, 200);
    const renewed = recordReading(proven, OFF, 3_000);
    assert.deepEqual([renewed.provenAtMs, renewed.offAtMs], [200, 3_000]);
    assert.equal(recordReading(proven, ON, 3_000).offAtMs, undefined);
  });
});

describe("a node's lease", () => {
  const lease = (renewTime: string, resourceVersion: string, uid = "l1"): Lease => ({
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "n1", namespace: "kube-node-lease", uid, resourceVersion },
    spec: { renewTime, leaseDurationSeconds: 40 },
  });
  const first = observeNodeLease(undefined, lease("2026-01-01T00:00:10.000000Z", "9"), 1_000, 1_000, IN_CONTACT);

  it("a node's lease does not count as renewed by the first read", () => assert.equal(first.renewedAtMs, undefined));

  it("a node's lease is renewed when a newer time is seen, at the moment of seeing it", () => {
    assert.equal(
      observeNodeLease(first, lease("2026-01-01T00:00:20.000000Z", "10"), 7_000, undefined, IN_CONTACT).renewedAtMs,
      7_000,
    );
  });

  it("a node's lease does not count as renewed by an event that is older than what was read", () => {
    assert.equal(
      observeNodeLease(first, lease("2026-01-01T00:00:05.000000Z", "8"), 7_000, undefined, IN_CONTACT).renewedAtMs,
      undefined,
    );
  });

  it("a node's lease does not count as renewed by being gone: what was known of it stays", () => {
    const gone = observeNodeLease(first, undefined, 7_000, 7_000, IN_CONTACT);
    assert.deepEqual(gone, { ...first, readAtMs: 7_000 });
  });

  it("a node's lease lasts for the time that it says", () => {
    const long = lease("2026-01-01T00:00:10.000000Z", "9");
    const spec = { ...long.spec, leaseDurationSeconds: 80 };
    assert.equal(observeNodeLease(undefined, { ...long, spec }, 1_000, 1_000, IN_CONTACT).durationMs, 80_000);
  });

  it("a node's lease is renewed by a kubelet whose clock was set back", () => {
    assert.equal(
      observeNodeLease(first, lease("2026-01-01T00:00:05.000000Z", "10"), 7_000, undefined, IN_CONTACT).renewedAtMs,
      7_000,
    );
  });

  it("a node's lease does not count as renewed by a change that leaves its time as it is", () => {
    assert.equal(
      observeNodeLease(first, lease("2026-01-01T00:00:10.000000Z", "10"), 7_000, undefined, IN_CONTACT).renewedAtMs,
      undefined,
    );
  });

  it("a node's lease is renewed by a lease of another UID: its node was registered again", () => {
    assert.equal(
      observeNodeLease(first, lease("2026-01-01T00:00:05.000000Z", "10", "l2"), 7_000, undefined, IN_CONTACT)
        .renewedAtMs,
      7_000,
    );
  });

  it("a node's lease counts as renewed at the first read by a later version, or another UID, than the one that was silent", () => {
    const proven = { uid: "l1", resourceVersion: "9" };
    const look = (resourceVersion: string, uid?: string) =>
      observeNodeLease(
        undefined,
        lease("2026-01-01T00:00:10.000000Z", resourceVersion, uid),
        7_000,
        7_000,
        IN_CONTACT,
        proven,
      );
    assert.deepEqual([look("10").renewedAtMs, look("10").firstRenewedAtMs], [7_000, 7_000]);
    assert.equal(look("9", "l2").renewedAtMs, 7_000);
    assert.deepEqual(look("9"), { ...first, readAtMs: 7_000 });
  });

  it("a node's lease does not count as renewed by a first read of an older version than the one that was silent, nor by that one", () => {
    const proven = { uid: "l1", resourceVersion: "9" };
    const at = (known: ReturnType<typeof observeNodeLease> | undefined, read: Lease | undefined) =>
      observeNodeLease(known, read, 7_000, undefined, IN_CONTACT, proven);
    const silent = lease("2026-01-01T00:00:10.000000Z", "9");
    for (const read of [lease("2026-01-01T00:00:00.000000Z", "8"), undefined]) {
      assert.equal(at(at(undefined, read), silent).renewedAtMs, undefined);
      assert.equal(at(at(undefined, read), lease("2026-01-01T00:00:20.000000Z", "10")).renewedAtMs, 7_000);
    }
  });

  const stamped = (time: string, resourceVersion: string): Lease => {
    const { metadata, ...rest } = lease("2020-01-01T00:00:00.000000Z", resourceVersion);
    return { ...rest, metadata: { ...metadata, managedFields: [{ time: "2026-01-01T00:00:01Z" }, { time }, {}] } };
  };
  const serverTimeMs = Date.UTC(2026, 0, 1, 0, 1, 0);
  const contact = { sinceMs: 500, serverTimeMs, clockSteadySinceMs: -Infinity };

  it("the age of a node's lease is judged by the clock of the API server and not by the clock of the node", () => {
    const observations = observeNodeLease(undefined, stamped("2026-01-01T00:00:40Z", "9"), 100_000, 100_000, contact);
    assert.equal(observations.writtenAtMs, 100_000 - 19_000);
    assert.equal(observations.answeringSinceMs, 500);
  });

  it("a node's lease was written just now, at the latest, if the API server's clock went back", () => {
    assert.equal(
      observeNodeLease(undefined, stamped("2026-01-01T00:09:00Z", "9"), 100_000, 100_000, contact).writtenAtMs,
      100_000,
    );
  });

  it("a node's lease was written at an unknown time if the API server's clock or its stamp is not known", () => {
    assert.equal(
      observeNodeLease(undefined, stamped("2026-01-01T00:00:40Z", "9"), 1_000, 1_000, IN_CONTACT).writtenAtMs,
      undefined,
    );
    assert.equal(
      observeNodeLease(undefined, lease("2026-01-01T00:00:40Z", "9"), 1_000, 1_000, contact).writtenAtMs,
      undefined,
    );
  });

  it("a node's lease was written at the later time of two that two API servers' clocks make of it", () => {
    const first = observeNodeLease(undefined, stamped("2026-01-01T00:00:40Z", "9"), 100_000, 100_000, contact);
    const ahead = { ...contact, serverTimeMs: serverTimeMs + 30_000 };
    const second = observeNodeLease(first, stamped("2026-01-01T00:00:40Z", "9"), 101_000, 101_000, ahead);
    assert.equal(second.writtenAtMs, first.writtenAtMs);
    assert.equal(second.readAtMs, 101_000);
  });

  it("a node's lease keeps when it was written if an event that is older is shown late", () => {
    const first = observeNodeLease(undefined, stamped("2026-01-01T00:00:40Z", "9"), 100_000, 100_000, contact);
    assert.equal(
      observeNodeLease(first, stamped("2026-01-01T00:00:30Z", "8"), 100_000, undefined, contact).writtenAtMs,
      81_000,
    );
  });

  it("a node's lease that appears if there was none counts as renewed", () => {
    const none = observeNodeLease(undefined, undefined, 1_000, 1_000, IN_CONTACT);
    assert.equal(
      observeNodeLease(none, lease("2026-01-01T00:00:10.000000Z", "10"), 7_000, undefined, IN_CONTACT).renewedAtMs,
      7_000,
    );
  });
});

describe("a reboot on record", () => {
  // The Ready condition of the test node went Unknown at 11:00.
  const at = (offConfirmedAt: string) => ({ time: offConfirmedAt, offConfirmedAt });
  const sibling = (succeeded: boolean, offConfirmedAt = "2026-01-01T10:50:00.123000Z"): Sibling => ({
    uid: "s",
    namespace: "ns",
    name: "s",
    waiting: false,
    succeeded,
    offConfirmedAt,
  });

  it("a reboot on record belongs to this outage if the node went down before the host was proven off", () =>
    assert.equal(rebootOfThisOutage(at("2026-01-01T11:05:00Z"), node(), []), true));
  it("a reboot on record does not belong to this outage if the node has come up in another boot since", () => {
    const reboot = { ...at("2026-01-01T11:05:00Z"), bootID: "old-boot" };
    assert.equal(rebootOfThisOutage(reboot, node({ bootID: "new-boot" }), []), false);
    assert.equal(rebootOfThisOutage(reboot, node(), []), true);
  });
  it("a reboot on record does not belong to this outage if the node went down later", () =>
    assert.equal(rebootOfThisOutage(at("2026-01-01T10:50:00Z"), node(), []), false));
  it("a reboot on record belongs to this outage if the node came up ailing after it, and its remediation is still there", () =>
    assert.equal(rebootOfThisOutage(at("2026-01-01T10:50:00Z"), node(), [sibling(false)]), true));
  it("a reboot on record does not belong to this outage if that remediation has succeeded", () =>
    assert.equal(rebootOfThisOutage(at("2026-01-01T10:50:00Z"), node(), [sibling(true)]), false));
  it("a reboot on record does not belong to this outage if that remediation made another reboot", () =>
    assert.equal(rebootOfThisOutage(at("2026-01-01T10:49:00Z"), node(), [sibling(false)]), false));
  it("a reboot on record does not belong to this outage if it was long ago", () => {
    const made = "2026-01-01T09:00:00Z";
    assert.equal(rebootOfThisOutage(at(made), node(), [sibling(false, made)]), false);
  });
  it("a reboot on record does not belong to this outage if the node is Ready", () =>
    assert.equal(rebootOfThisOutage(at("2026-01-01T11:05:00Z"), node({ ready: "True" }), []), false));
  it("a reboot on record does not belong to this outage if the target has none on record", () =>
    assert.equal(rebootOfThisOutage(undefined, node(), []), false));
});
