import assert from "node:assert/strict";
import { it } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { holdOrder, imageAfterReboots, isOperated } from "./bare-metal-host.ts";
import type { Facts, HostTruth, OrderRecord, Step } from "./facts.ts";
import { powerOffAnnotation } from "../../../src/api/metal3/metal3.ts";

// Shows with invented facts that the rule can be broken, and that it holds for the corresponding allowed facts.

const OWNER = {
  "ironfence.io/owner": JSON.stringify({ uid: "r1", kind: "BareMetalRemediation", namespace: "x", name: "y" }),
};

function host(spec: Record<string, unknown>, annotations: Record<string, string> = OWNER): KubeObject {
  const metadata = { name: "n1", namespace: "metal3", uid: "h1", resourceVersion: "1", annotations };
  return { apiVersion: "metal3.io/v1alpha1", kind: "BareMetalHost", metadata, spec } as KubeObject;
}

const IMAGE = { image: { url: "http://image" } };
const OFF = { host: "n1", order: "ForceOff", outcome: "Started", remediation: "r1" };
const cycle = (retryCount: number): OrderRecord =>
  ({ ...OFF, attempt: { id: "", action: "ForceOff", retryCount } }) as OrderRecord;

interface Parts {
  kind?: string;
  power?: string;
  labels?: Record<string, string>;
  orders?: OrderRecord[];
  installation?: object | undefined;
}

function wiped(
  { kind = "Reprovision", power = "Off", labels = {}, orders = [cycle(0), cycle(1)], ...parts }: Parts = {},
  after: Record<string, unknown> = {},
): string | undefined {
  const installation = "installation" in parts ? parts.installation : { step: "Deprovisioning" };
  const remediation = {
    spec: { strategy: { type: "Escalate", retryLimit: 0 } },
    status: { attempt: { kind }, node: { name: "n1" }, installation },
  };
  const facts = {
    remediations: new Map([["r1", remediation as unknown as BareMetalRemediation]]),
    hosts: new Map([["n1", { power } as HostTruth]]),
    nodes: new Map([["n1", { metadata: { labels } } as unknown as Node]]),
    orders,
  } as unknown as Facts;
  const step: Step = {
    type: "wrote",
    by: "agent",
    change: { type: "MODIFIED", object: host(after), previous: host(IMAGE) },
  };
  return imageAfterReboots.check(facts, step);
}

it("a BareMetalHost is wiped only as S6 says", () => {
  assert.equal(wiped(), undefined);
  assert.equal(wiped({ orders: [] }, IMAGE), undefined, "nothing is removed");
  assert.match(wiped({ orders: [cycle(0)] }) ?? "", /after 0 reboots/);
  assert.match(wiped({ kind: "Reboot" }) ?? "", /without a stored intent/);
  assert.match(wiped({ installation: undefined }) ?? "", /without a stored intent/);
  assert.match(wiped({ power: "On" }) ?? "", /while it is On/);
  assert.match(wiped({ labels: { "node-role.kubernetes.io/control-plane": "" } }) ?? "", /control plane/);
  assert.match(wiped({}, { consumerRef: { kind: "Metal3Machine", name: "m1" } }) ?? "", /although m1 has taken it/);
});

it("an off request that is added is a power-off order, and one that is withdrawn is a power-on order", () => {
  const held = { ...OWNER, [powerOffAnnotation({ uid: "r1" })]: '{"mode":"hard"}' };
  const orderOf = (object: KubeObject, previous: KubeObject, power: string): string => {
    const hosts = new Map([["n1", { power } as HostTruth]]);
    const order = holdOrder({ type: "MODIFIED", object, previous }, "agent", 0, hosts, new Map());
    return order === undefined ? "none" : `${order.order} ${order.outcome} ${order.remediation}`;
  };
  assert.equal(orderOf(host(IMAGE, held), host(IMAGE), "On"), "ForceOff Started r1");
  assert.equal(orderOf(host(IMAGE, held), host(IMAGE), "Off"), "ForceOff NoChange r1");
  assert.equal(orderOf(host(IMAGE), host(IMAGE, held), "Off"), "On Started r1");
  assert.equal(orderOf(host(IMAGE, {}), host(IMAGE, held), "Off"), "On Started r1", "given up with the same write");
  assert.equal(orderOf(host(IMAGE), host(IMAGE, held), "On"), "none", "it is on already");
  assert.equal(orderOf(host({}), host(IMAGE, held), "Off"), "none", "it is wiped, not powered on");
  assert.equal(orderOf(host(IMAGE, held), host(IMAGE, held), "On"), "none");
});

it("an operator powers a host on if the host is to be on, has something to boot, and no agent keeps it off", () => {
  assert.equal(isOperated(host({ ...IMAGE, online: true })), true);
  assert.equal(isOperated(host({ ...IMAGE, online: false })), false);
  assert.equal(isOperated(host({ online: true })), false, "nothing is installed");
  const held = { [powerOffAnnotation({ uid: "r1" })]: '{"mode":"hard"}' };
  assert.equal(isOperated(host({ ...IMAGE, online: true }, held)), false);
});
