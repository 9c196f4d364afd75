import { localNode } from "../../../../../src/nodes/subject.ts";
import { NOW } from "../snapshots.ts";
import { CLUSTER, MACHINE, SPENT, TARGET } from "./fixtures.ts";
import type { Facts, Step } from "./situations.ts";
import { undoing } from "./situations.ts";

/** Whether a Machine is handed to its owner when its remediation has failed. */
const HANDED_OVER: readonly { name: string; facts: Facts; handsOver: boolean }[] = [
  {
    name: "a Machine whose host was proven off, and whose node is not back, is handed to its owner",
    facts: { status: { target: TARGET, provenReboots: 2 } },
    handsOver: true,
  },
  {
    name: "a Machine that was handed to its owner is not handed over again",
    facts: { status: { target: TARGET, provenReboots: 2 }, observations: { handedToOwner: true } },
    handsOver: false,
  },
  {
    name: "a verdict does not wait for a hand-over that the API server refuses",
    facts: {
      status: { target: TARGET, provenReboots: 2 },
      observations: {
        kube: {
          call: "taint",
          sinceMs: 0,
          message: "forbidden",
          refused: true,
          failures: 1,
          retryAtMs: NOW.monotonicMs,
        },
      },
    },
    handsOver: false,
  },
  {
    name: "a Machine whose host was not proven off is not handed to its owner",
    facts: { status: { target: TARGET } },
    handsOver: false,
  },
  {
    name: "a Machine is handed to its owner without a proof if the strategy needs none",
    facts: { status: { target: TARGET }, strategy: { requireReboot: false } },
    handsOver: true,
  },
  {
    name: "a Machine is not handed to its owner if the wrong host was fenced",
    facts: { status: { target: TARGET, provenReboots: 1 }, outcome: { ...SPENT, reason: "WrongHost" } },
    handsOver: false,
  },
  {
    name: "a Machine is not handed to its owner by a remediation that its requester gave up",
    facts: { status: { target: TARGET, provenReboots: 1 }, outcome: { ...SPENT, verdict: "TimedOut" } },
    handsOver: false,
  },
  {
    name: "a Machine is not handed to its owner by the child of a request, which reports by itself",
    facts: { status: { target: TARGET, provenReboots: 1 }, remediation: { isRequested: true } },
    handsOver: false,
  },
  {
    name: "nothing is handed over if the remediation names a Node alone",
    facts: { status: { target: TARGET, provenReboots: 1 }, other: { subject: localNode("n1") } },
    handsOver: false,
  },
  {
    name: "a Machine of OKD is not handed over, since it has no such owner",
    facts: {
      status: { target: TARGET, provenReboots: 1 },
      other: {
        subject: {
          nodeName: "n1",
          cluster: undefined,
          machine: { ...MACHINE, apiVersion: "machine.openshift.io/v1beta1" },
        },
      },
    },
    handsOver: false,
  },
];

/** How a failed remediation of a Machine hands it to its owner. */
export const HANDING_OVER_STEPS: readonly Step[] = HANDED_OVER.map(({ name, facts, handsOver }) => ({
  name,
  given: undoing({
    ...facts,
    attempt: { action: "On", done: true, offConfirmedAtMs: undefined },
    taint: "cleared",
    observations: { marksCleared: true, devicesClosed: true, hostReleased: true, ...facts.observations },
    other: { subject: { nodeName: "n1", cluster: CLUSTER, machine: MACHINE }, ...facts.other },
  }),
  expected: handsOver ? "handToOwner" : "→ Failed (Failed)",
}));
