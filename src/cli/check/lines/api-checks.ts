import { AGENT_COMPONENTS, AGENT_STANDS_BY, AGENT_VERSION } from "../../../api/names/annotations.ts";
import type { LeaderLease } from "../../../kube/lease/lease-record.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { Check, Finding } from "../check.ts";
import { cannotCheck, failed, passed, orOk, warning } from "../check.ts";
import type { ApiFacts } from "../facts.ts";
import { isUnread } from "../facts.ts";

/** The first version in which admission policies are stable, as README.md says. */
const MINOR_MIN = 30;
/** If the clocks are further apart, ages and leases look wrong from here. */
const CLOCKS_APART_MS = 5_000;

/** The only check that is reported if the API server does not answer. */
export const API_SERVER: Check<ApiFacts> = {
  id: "api-server",
  category: "Kubernetes API",
  title: "the API server answers, in a version that ironfence supports",
  run: ({ cluster, server: { major, minor, text } }) => {
    const where = `${cluster.server} (${cluster.source}) is Kubernetes ${text}`;
    if (major > 1 || minor >= MINOR_MIN) return [passed(where)];
    return [failed(`${where}, and ironfence needs 1.${MINOR_MIN} or newer`, "upgrade the cluster")];
  },
};

const CLOCK: Check<ApiFacts> = {
  id: "clock",
  category: "Kubernetes API",
  title: "the clocks of this machine and of the API server agree",
  run: ({ clockOffset }) => {
    if (clockOffset === undefined) return [cannotCheck("the answers of the API server have no date")];
    const { minMs, maxMs } = clockOffset;
    const behindMs = minMs > 0 ? minMs : maxMs < 0 ? -maxMs : 0;
    if (behindMs <= CLOCKS_APART_MS) return [passed("they are less than 5 s apart")];
    const direction = minMs > 0 ? "behind" : "ahead of";
    const message = `the clock of this machine is ${Math.round(behindMs / 1_000)} s ${direction} that of the API server`;
    return [
      warning(
        `${message}, so ages and leases look wrong from here`,
        "synchronize both with the same time servers (NTP)",
      ),
    ];
  },
};

/** @param report returns what the agent itself has reported about another installation. */
export function oneInstallation<F extends ApiFacts>(report: (facts: F) => readonly Finding[]): Check<F> {
  return {
    id: "one-installation",
    category: "Installation",
    title: "no second installation acts on the same nodes",
    run: (facts) => {
      const { leases, namespace, nowMs } = facts;
      if (isUnread(leases)) return [cannotCheck(leases.unread)];
      const own = leases.find(({ metadata }) => metadata.namespace === namespace);
      const others = leases.filter(
        (lease) =>
          lease.metadata.namespace !== namespace &&
          lease.metadata.annotations?.[AGENT_VERSION] !== undefined &&
          isFresh(lease.spec, nowMs) &&
          shareWork(own, lease),
      );
      const findings = [...report(facts), ...others.map((lease) => judgeOther(lease, namespace))];
      return orOk(findings, `no other agent leads outside of namespace ${namespace}`);
    },
  };
}

function judgeOther({ metadata, spec }: LeaderLease, namespace: string): Finding {
  const { namespace: other = "", name, annotations } = metadata;
  const who = `${spec?.holderIdentity ?? ""} (Lease ${other}/${name})`;
  const hint = `keep one installation: remove the one in namespace ${other} or the one in ${namespace}`;
  if ((annotations?.[AGENT_STANDS_BY] ?? "") !== "") return warning(`${who} of another installation stands by`, hint);
  return failed(`${who} of another installation leads as well`, hint);
}

/** Two installations may share the work: one runs the detector, the other one the remediator. */
function shareWork(own: LeaderLease | undefined, other: LeaderLease): boolean {
  const of = (lease: LeaderLease | undefined): readonly string[] =>
    (lease?.metadata.annotations?.[AGENT_COMPONENTS] ?? "").split(",").filter((component) => component !== "");
  const [mine, theirs] = [of(own), of(other)];
  return mine.length === 0 || theirs.length === 0 || mine.some((component) => theirs.includes(component));
}

function isFresh(spec: { holderIdentity?: string; renewTime?: string } | undefined, nowMs: number): boolean {
  const renewedMs = parseTimeMs(spec?.renewTime) ?? 0;
  return spec?.holderIdentity !== undefined && spec.holderIdentity !== "" && nowMs - renewedMs < SILENT_MS;
}

/** An agent that has not renewed its lease for this time no longer leads, whatever the duration of the lease is. */
const SILENT_MS = 60_000;

/** The checks of every run, before and after an installation. */
export const API_CHECKS: readonly Check<ApiFacts>[] = [API_SERVER, CLOCK];
