import type { RemediationSession } from "./session/session.ts";
import { isUnresolved } from "../../nodes/subject.ts";
import type { FencedHost, HostDirectory } from "../hosts/model/host.ts";
import { compareIdentity } from "../hosts/model/identity.ts";
import type { LookupFailure } from "../machine/model/facts/host-facts.ts";

/** Which host a remediation works on, or why it has none. */
export type Lookup = { found: true; host: FencedHost } | LookupFailure;

/**
 * The host of the recorded target, or the host that a target names for the node if none is recorded. An undo also
 * accepts a target that was created again for the same host.
 */
export function findHost(directory: HostDirectory, session: RemediationSession): Lookup {
  const recorded = findRecorded(directory, session);
  const { target, phase } = session.status;
  if (recorded.found || target === undefined || phase !== "Undoing") return recorded;
  const successor = directory.find(session.subject);
  const { identity } = successor.found ? successor.host : {};
  return identity !== undefined && compareIdentity(target, identity) === "match" ? successor : recorded;
}

/** The host of the recorded target, or the host that a target names for the node if none is recorded. */
function findRecorded(directory: HostDirectory, session: RemediationSession): Lookup {
  const { target, phase } = session.status;
  if (isUnresolved(session.remediation)) {
    return { found: false, reason: "NoTarget", message: "the node of this remediation is not resolved yet" };
  }
  if (target === undefined) return directory.find(session.subject);
  const host = directory.byUid(target.uid);
  const what = `${target.kind} ${target.namespace}/${target.name}`;
  if (host === undefined) {
    const orElse = target.kind === "BareMetalHost" ? ", or the family bare-metal-host is not served any more" : "";
    return { found: false, reason: "NoTarget", message: `${what} is gone${orElse}` };
  }
  const mismatch = host.mismatchWith(session.subject);
  const isTakenBack = phase === "Undoing" && host.isPoweredByMark;
  if (mismatch === undefined || isTakenBack) return { found: true, host };
  // Its devices now belong to another node, whose host must not be powered off.
  return { found: false, reason: "NoTarget", message: `${what} ${mismatch}` };
}
