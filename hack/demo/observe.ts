import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node, Pod } from "../../src/api/kubernetes/core.ts";
import { EVENTS, NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import type { NodeHealthCheck } from "../../src/api/ironfence/node-health-check.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { NODE_NAME } from "../../src/api/names/annotations.ts";
import { OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../../src/api/kubernetes/taints.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import type { LocalChange } from "../kube-mock/local-collection.ts";
import type { RackEvent } from "../rack/events.ts";
import type { Chronicle } from "./chronicle.ts";
import { DATABASE } from "./objects.ts";
import type { World } from "./world.ts";

/**
 * Records what happens in the rack (the real power) and in the store of the API server (what every client sees). It
 * does not ask the agent. If a host is on while a taint claims that it is off, this is recorded as a failure of the
 * whole demo.
 *
 * @returns each violation of a safety rule as a sentence; empty if there was none.
 */
export function observe(world: World, chronicle: Chronicle): { violations: readonly string[]; stop(): void } {
  const violations: string[] = [];
  const subscriptions = [
    world.rack.subscribe((event) => noteRackEvent(event, chronicle)),
    world.server.collection<Node>(NODES).subscribe((change) => noteNode(change, world, chronicle, violations)),
    world.server.collection<Pod>(PODS).subscribe((change) => notePod(change, chronicle)),
    world.server
      .collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS)
      .subscribe((change) => noteRemediation(change, chronicle)),
    world.server
      .collection<NodeHealthCheck>(NODE_HEALTH_CHECKS)
      .subscribe((change) => noteHealthCheck(change, chronicle)),
    world.server.collection(EVENTS).subscribe((change) => noteEvent(change, chronicle)),
  ];
  return {
    violations,
    stop: () => {
      for (const unsubscribe of subscriptions) unsubscribe();
    },
  };
}

function noteRackEvent(event: RackEvent, chronicle: Chronicle): void {
  const { host } = event;
  switch (event.type) {
    case "ordered":
      chronicle.note(host, `BMC receives ${event.order}`, event.order === "ForceOff" ? "forceOff" : undefined);
      return;
    case "powerChanged":
      if (event.power === "Off") chronicle.note(host, "host is off", "off");
      if (event.power === "On") chronicle.note(host, "host is on and boots", "on");
      return;
    case "booted":
      chronicle.note(host, "operating system is up (new boot)");
      return;
    case "bootFailed":
      chronicle.note(host, "no boot device: the disk is dead", undefined, "bad");
      return;
    case "reinstalled":
      chronicle.note(host, "installed again over the network", "networkBoot", "good");
      return;
    case "hung":
    case "crashed":
    case "diskFailed":
    case "resumed":
    case "restarting":
    case "bmcRestarted":
      return;
  }
}

function noteNode(change: LocalChange<Node>, world: World, chronicle: Chronicle, violations: string[]): void {
  const { name } = change.object.metadata;
  const now = change.type === "DELETED" ? undefined : change.object;
  const before = change.type === "ADDED" ? undefined : (change.previous ?? change.object);
  if (now === undefined) {
    chronicle.note(name, "Node object deleted (backup kept)", "nodeDeleted");
    return;
  }
  if (before === undefined && chronicle.find(name, "nodeDeleted") !== undefined) {
    chronicle.note(name, "Node joined again", "nodeRejoined");
  }
  const had = (taint: typeof QUARANTINE): boolean =>
    before?.spec.taints?.some((each) => sameTaint(each, taint)) ?? false;
  const has = (taint: typeof QUARANTINE): boolean => now.spec.taints?.some((each) => sameTaint(each, taint)) ?? false;
  const outOfServiceCame = has(OUT_OF_SERVICE) && !had(OUT_OF_SERVICE);
  if (outOfServiceCame) chronicle.note(name, "out-of-service taint on", "taint");
  if (has(OUT_OF_SERVICE) && world.rack.host(name).power !== "Off") {
    violations.push(`${name} carried the out-of-service taint while its host was ${world.rack.host(name).power}`);
  }
  if (had(OUT_OF_SERVICE) && !has(OUT_OF_SERVICE)) {
    chronicle.note(name, `out-of-service taint off${has(QUARANTINE) ? ", quarantine on" : ""}`, "quarantine");
  }
  const readyBefore = before === undefined ? undefined : readyStatus(before);
  const readyNow = readyStatus(now);
  if (readyBefore !== readyNow && before !== undefined && readyNow !== undefined) {
    if (readyNow === "True") chronicle.note(name, "Ready", "ready", "good");
    else chronicle.note(name, `Ready=${readyNow}`, "unknown", "bad");
  }
  if (had(QUARANTINE) && !has(QUARANTINE)) chronicle.note(name, "quarantine off", "restored");
}

function readyStatus(node: Node): string | undefined {
  return node.status.conditions?.find((condition) => condition.type === "Ready")?.status;
}

function notePod(change: LocalChange<Pod>, chronicle: Chronicle): void {
  const { name } = change.object.metadata;
  if (!name.startsWith(`${DATABASE}-`)) return;
  const node = change.object.spec.nodeName ?? change.previous?.spec.nodeName;
  if (node === undefined || chronicle.scene === 0) return;
  if (change.type === "DELETED") chronicle.note(node, `pod ${name} released`, "podGone");
  const running = change.object.status?.phase === "Running";
  const wasRunning = change.previous?.status?.phase === "Running";
  if (change.type === "MODIFIED" && running && !wasRunning) {
    chronicle.note(node, `pod ${name} runs here`, "podRunning", "good");
  }
}

function noteRemediation(change: LocalChange<BareMetalRemediation>, chronicle: Chronicle): void {
  const { metadata, spec, status } = change.object;
  const node = metadata.annotations?.[NODE_NAME] ?? metadata.name;
  if (change.type === "ADDED") {
    const earlier = chronicle.find(node, "remediation") !== undefined;
    chronicle.note(node, `remediation created: ${spec.strategy.type}`, earlier ? "escalated" : "remediation");
    return;
  }
  const succeeded = status?.conditions?.find((condition) => condition.type === "Succeeded");
  const before = change.previous?.status?.conditions?.find((condition) => condition.type === "Succeeded");
  if (change.type !== "MODIFIED" || succeeded === undefined || succeeded.status === before?.status) return;
  if (succeeded.status === "True") chronicle.note(node, `${spec.strategy.type} succeeded`, "succeeded", "good");
  if (succeeded.status === "False") {
    chronicle.note(node, `${spec.strategy.type} failed: ${succeeded.reason}: ${succeeded.message}`, "failed", "bad");
  }
}

function noteHealthCheck(change: LocalChange<NodeHealthCheck>, chronicle: Chronicle): void {
  const names = (check: NodeHealthCheck | undefined): string[] =>
    (check?.status?.unhealthyNodes ?? []).map((node) => node.name);
  const now = new Set(names(change.object));
  for (const name of names(change.previous)) {
    if (!now.has(name)) chronicle.note(name, "health check: healthy again", "healthy", "good");
  }
}

/** Records only Events that say why a health check did not act. All else is visible in other objects. */
function noteEvent(change: LocalChange<KubeObject>, chronicle: Chronicle): void {
  if (change.type !== "ADDED") return;
  const event = change.object as KubeObject & { reason?: string; note?: string; related?: { name?: string } };
  if (event.reason !== "RemediationSkipped" && event.reason !== "NoTemplateLeft") return;
  chronicle.note(
    event.related?.name ?? "cluster",
    `health check: ${event.note ?? event.reason}`,
    event.reason === "RemediationSkipped" ? "stormGuard" : undefined,
    "bad",
  );
}
