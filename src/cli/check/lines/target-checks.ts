import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { maintenanceOf, powerOffRefusal } from "../../../remediator/hosts/bare-metal-host/store/power-path.ts";
import { formatDuration } from "../../../runtime/duration.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { Problem } from "../../status/objects/object-problems.ts";
import { itemsOf, shorten } from "../../status/objects/object-problems.ts";
import { uncoveredOf } from "../../status/could-fence/could-fence.ts";
import { hostFinder, probeAgeMax } from "../../status/could-fence/hosts.ts";
import { isProbeOld } from "../../status/could-fence/target-readiness.ts";
import type { Check, Finding } from "../check.ts";
import { cannotCheck, failed, passed, orOk, warning } from "../check.ts";
import type { Facts } from "../facts.ts";
import { findingsOf, gapsIn, groupByReason, NOT_PROBED, problemsUnder } from "./problem-findings.ts";
import { CERTIFICATE_DAYS_MIN, horizonOf } from "../../../remediator/telemetry/probe-metrics.ts";
import { readyOf } from "../../../remediator/hosts/fencing-target/target-store.ts";

/**
 * Whether each node has a host that can be powered off, and whether anything holds power-offs. A hold is only a
 * warning, because an administrator wants it: a check after an upgrade must not fail because of it.
 */
export const TARGET_CHECKS: readonly Check<Facts>[] = [
  { id: "pause", category: "Holds", title: "no pause holds power-offs", run: judgePause },
  { id: "maintenance", category: "Holds", title: "no host is in maintenance", run: judgeMaintenance },
  {
    id: "fencing-targets",
    category: "Fencing targets",
    title: "the host of every FencingTarget can be powered off",
    run: judgeTargets,
  },
  {
    id: "probe-age",
    category: "Fencing targets",
    title: "every FencingTarget was probed recently",
    applies: ({ overview }) => itemsOf(overview.targets).length > 0,
    run: judgeProbeAges,
  },
  {
    id: "bare-metal-hosts",
    category: "Fencing targets",
    title: "the BareMetalHost of every node can be powered off",
    applies: servesHosts,
    run: judgeHosts,
  },
  {
    id: "nodes-covered",
    category: "Fencing targets",
    title: "every node has a FencingTarget or a BareMetalHost",
    run: judgeCoverage,
  },
  {
    id: "target-namespaces",
    category: "Fencing targets",
    title: "every FencingTarget is in the namespace that the agent reads",
    run: (facts) => {
      const gaps = gapsIn(facts.overview, ["targets"]);
      return gaps.length > 0 ? gaps : orOk(findingsOf("target-namespaces", facts), "there is none");
    },
  },
  {
    id: "bmc-certificates",
    category: "Fencing targets",
    title: `the certificates of BMCs are valid for at least ${CERTIFICATE_DAYS_MIN} days`,
    applies: ({ overview }) => itemsOf(overview.targets).some(hasCertificate),
    run: ({ overview, nowMs }) => judgeCertificates(itemsOf(overview.targets).filter(hasCertificate), nowMs),
  },
];

function judgePause({ overview: { stopSwitch }, nowMs }: Facts): readonly Finding[] {
  if ("problem" in stopSwitch) return [cannotCheck(stopSwitch.problem)];
  if (!stopSwitch.paused) return [passed("there is none")];
  const age = ageText(stopSwitch.since, nowMs);
  return [
    warning(`no power-off is sent${age}: ${stopSwitch.reason ?? "paused"}`, "end the pause with: ironfence resume"),
  ];
}

function judgeMaintenance(facts: Facts): readonly Finding[] {
  const gaps = gapsIn(facts.overview, ["targets"]);
  if (gaps.length > 0) return gaps;
  const resting = itemsOf(facts.overview.targets).filter(({ spec }) => spec.maintenance);
  const hosts = servesHosts(facts) ? hostsOf(facts).flatMap(({ host }) => maintenanceOf(host) ?? []) : [];
  return orOk(
    [
      ...resting.map((target) => {
        const { spec, status, metadata } = target;
        const ready = readyOf(status);
        const age = ready?.reason === "Maintenance" ? ageText(ready.lastTransitionTime, facts.nowMs) : "";
        return warning(
          `node ${spec.nodeName} is in maintenance${age}, so its host is not powered off`,
          `when the work is done: kubectl -n ${metadata.namespace ?? ""} patch fencingtarget ${metadata.name} --type merge -p '{"spec":{"maintenance":false}}'`,
        );
      }),
      ...hosts.map((message) => warning(message)),
    ],
    "there is none",
  );
}

function judgeTargets(facts: Facts): readonly Finding[] {
  const gaps = gapsIn(facts.overview, ["targets"]);
  if (gaps.length > 0) return gaps;
  const targets = itemsOf(facts.overview.targets);
  if (targets.length === 0 && !servesHosts(facts)) {
    return [failed("there is no FencingTarget, so no node can be fenced", "create one for each node")];
  }
  const unprobed = targets.filter(({ spec, status }) => !spec.maintenance && readyOf(status) === undefined);
  const tooLate = targets.filter(({ metadata }) => facts.unprobed.has(metadata.uid));
  const problems: Problem[] = [
    ...problemsUnder("fencing-targets", facts),
    ...unprobed.map((target) => notProbed(target, NEVER_PROBED)),
    ...tooLate.map((target) => notProbed(target, TOO_LATE)),
  ];
  const usable = targets.length - unprobed.length;
  return orOk(groupByReason(problems), `${usable} of ${targets.length} can be powered off, or are in maintenance`);
}

const NEVER_PROBED = "the agent has not probed it yet, so it is not known whether the host can be powered off";
const TOO_LATE = "the time for --live was over before its BMC was asked: repeat it with a longer --live-timeout";

function notProbed({ metadata }: FencingTarget, message: string): Problem {
  const name = `${metadata.namespace ?? ""}/${metadata.name}`;
  return { severity: "error", kind: "FencingTarget", name, reason: NOT_PROBED, message };
}

function judgeProbeAges({ overview }: Facts): readonly Finding[] {
  const gaps = gapsIn(overview, ["targets"]);
  if (gaps.length > 0) return gaps;
  const targets = itemsOf(overview.targets);
  const clock = { nowMs: overview.nowMs, oldMs: probeAgeMax(overview) };
  // Another check reports targets that were never probed.
  const old = targets.filter((target) => target.status?.lastProbeTime !== undefined && isProbeOld(target, clock));
  const oldText = formatDuration(clock.oldMs);
  if (old.length === 0) return [passed(`none is older than ${oldText}`)];
  const names = shorten(old.map(({ metadata }) => metadata.name));
  const message = `${old.length} of ${targets.length} were not probed for ${oldText}: ${names}`;
  return [
    warning(`${message}: their status may be out of date`, "read the log of the leader, or run ironfence check --live"),
  ];
}

/** Whether the leader uses BareMetalHosts. */
function servesHosts({ overview: { agent } }: Facts): boolean {
  return "families" in agent && agent.families.includes("bare-metal-host");
}

/** The BareMetalHosts by which the leader would power nodes, each with its node. */
function hostsOf({ overview }: Facts) {
  const findHost = hostFinder(overview);
  return itemsOf(overview.nodes).flatMap((node) => {
    const { name } = node.metadata;
    const found = findHost(name, node);
    return found.by === "host" ? [{ node: name, host: found.host }] : [];
  });
}

function judgeHosts(facts: Facts): readonly Finding[] {
  const gaps = gapsIn(facts.overview, ["bareMetalHosts", "nodes", "targets"]);
  if (gaps.length > 0) return gaps;
  const hosts = hostsOf(facts);
  const problems = hosts.flatMap(({ node, host }): Problem[] => {
    const refusal = powerOffRefusal(host);
    if (refusal === undefined) return [];
    const { reason, message } = refusal;
    return [{ severity: "error", kind: "BareMetalHost", name: node, reason, message }];
  });
  return orOk(groupByReason(problems), `${hosts.length} nodes have one, and all of these can be powered off`);
}

const HOSTS = ["bareMetalHosts"] as const;

function judgeCoverage(facts: Facts): readonly Finding[] {
  const { overview } = facts;
  const { bareMetalHosts } = overview;
  // Without the kind, no node has such a host. If the hosts cannot be listed, any node may have one.
  const gaps = gapsIn(overview, ["nodes", "targets", "healthChecks", ...(bareMetalHosts === undefined ? [] : HOSTS)]);
  if (gaps.length > 0) return gaps;
  const { withoutTarget, withoutCheck } = uncoveredOf(overview);
  const idle = withoutTarget.filter((name) => withoutCheck.includes(name));
  const findings = findingsOf("nodes-covered", facts);
  if (idle.length > 0) {
    const message = `${idle.length} nodes have none, and no health check covers them either: ${shorten(idle)}`;
    findings.push(warning(message, "create a FencingTarget for each node that is to be fenced"));
  }
  return orOk(findings, `${itemsOf(overview.nodes).length} nodes, each with one`);
}

/** Whether a probe has read a certificate of its BMC. */
function hasCertificate({ status }: FencingTarget): boolean {
  return status?.certificateNotAfter !== undefined;
}

function judgeCertificates(targets: readonly FencingTarget[], nowMs: number): readonly Finding[] {
  const notAfterOf = ({ status }: FencingTarget): string => status?.certificateNotAfter ?? "";
  const ending = targets.filter(
    (target) => horizonOf((parseTimeMs(notAfterOf(target)) ?? Infinity) - nowMs) !== "later",
  );
  return orOk(
    // The Systems of one BMC share its certificate, and so its expiry.
    [...Map.groupBy(ending, notAfterOf)].map(([notAfter, same]) => {
      const verb = (parseTimeMs(notAfter) ?? 0) < nowMs ? "has been invalid since" : "is valid only until";
      const names = shorten(same.map(({ metadata }) => `${metadata.namespace ?? ""}/${metadata.name}`));
      return warning(
        `a certificate of the BMC of FencingTarget ${names} ${verb} ${notAfter}`,
        "install a new certificate on the BMC, and change tls.sha256Fingerprint if it is pinned",
      );
    }),
    `${targets.length} of ${targets.length} that have one`,
  );
}

/** ` for 3h12m0s`; empty if the start is not known. */
function ageText(since: string | undefined, nowMs: number): string {
  const sinceMs = parseTimeMs(since);
  return sinceMs === undefined ? "" : ` for ${formatDuration(Math.max(0, nowMs - sinceMs))}`;
}
