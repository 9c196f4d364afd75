import { permissionText } from "../../../kube/reviews/permission-review.ts";
import type { PermissionReview } from "../../../kube/reviews/permission-review.ts";
import { shorten } from "../../status/objects/object-problems.ts";
import { unreadVersionText } from "../../cluster/unread-versions.ts";
import { API_CHECKS, oneInstallation } from "./api-checks.ts";
import type { Check, Finding } from "../check.ts";
import { cannotCheck, failed, passed, orOk, warning } from "../check.ts";
import type { PortFinding, PreFacts } from "../facts.ts";
import { isUnread } from "../facts.ts";

/** RBAC asks for these only of a user who lacks the permissions that the roles grant. */
const ONLY_TO_GRANT = new Set(["bind", "escalate"]);

/** Before an installation: whether it will succeed, and whether anything conflicts with it. */
export const PRE_CHECKS: readonly Check<PreFacts>[] = [
  ...API_CHECKS,
  oneInstallation(() => []),
  {
    id: "admission",
    category: "Kubernetes API",
    title: "the API server enforces admission policies",
    run: ({ servesAdmissionPolicies }) =>
      servesAdmissionPolicies
        ? [passed("it serves admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy")]
        : [
            failed(
              "it does not serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy, so neither deploy/kustomize nor the Helm chart can be applied",
              "upgrade the cluster to 1.30 or newer, or enable that API (--runtime-config of kube-apiserver)",
            ),
          ],
  },
  {
    id: "installer-permissions",
    category: "Installation",
    title: "you may install everything in deploy/node-health-check and deploy/kustomize",
    run: ({ permissions }) => (isUnread(permissions) ? [cannotCheck(permissions.unread)] : judgeInstaller(permissions)),
  },
  {
    id: "foreign-kinds",
    category: "Installation",
    title: "kinds of other projects are served in versions that ironfence reads",
    run: judgeForeignKinds,
  },
  {
    id: "bmc-ports",
    category: "BMC network",
    title: "the BMCs that the cluster knows accept connections from this machine",
    run: ({ ports }) => (isUnread(ports) ? [cannotCheck(ports.unread)] : judgePorts(ports)),
  },
];

function judgeInstaller(reviews: readonly PermissionReview[]): readonly Finding[] {
  const { needed = [], granting = [] } = Object.groupBy(
    reviews.filter(({ allowed }) => !allowed),
    ({ permission }) => (ONLY_TO_GRANT.has(permission.verb) ? "granting" : "needed"),
  );
  const missing = (all: PermissionReview[]): string => shorten(all.map(({ permission }) => permissionText(permission)));
  return orOk(
    [
      ...(needed.length === 0
        ? []
        : [
            failed(
              `you lack ${missing(needed)}`,
              "install as a cluster administrator, or ask one for these permissions",
            ),
          ]),
      ...(granting.length === 0
        ? []
        : [
            warning(
              `you lack ${missing(granting)}, so you can grant only permissions that you have yourself`,
              "install as a cluster administrator if the API server refuses a role",
            ),
          ]),
    ],
    `you have all ${reviews.length} permissions that an installation needs`,
  );
}

function judgeForeignKinds({ familyKinds, healthCheckCrd }: PreFacts): readonly Finding[] {
  const findings = familyKinds
    .filter(({ state }) => state === "unread")
    .map((kind) => warning(unreadVersionText(kind)));
  if (isUnread(healthCheckCrd)) findings.push(cannotCheck(healthCheckCrd.unread));
  else if (healthCheckCrd !== undefined && healthCheckCrd.metadata.labels?.["app.kubernetes.io/name"] !== "ironfence") {
    findings.push(
      warning(
        "another operator has installed the CRD of NodeHealthCheck, and two controllers must not act on the same health checks",
        "leave deploy/node-health-check out, and stop the other operator's controller, or leave node-health-check out of --families",
      ),
    );
  }
  const served = familyKinds.filter(({ state }) => state === "read");
  const names = [...new Set(served.map(({ kind, version }) => `${kind.kind} ${kind.group}/${version}`))];
  return orOk(findings, names.length === 0 ? "there are none" : names.join(", "));
}

function judgePorts(ports: readonly PortFinding[]): readonly Finding[] {
  if (ports.length === 0) return [passed("the cluster has no FencingTarget and no BareMetalHost yet")];
  const closed = ports.filter(({ state }) => state === "closed");
  const unchecked = ports.filter(({ state }) => state === "unchecked").length;
  const [first] = closed;
  const udp = unchecked === 0 ? "" : `; ${unchecked} use IPMI over UDP, which only a login can check`;
  if (first === undefined) return [passed(`${ports.length - unchecked} BMCs accept TCP connections${udp}`)];
  const message = `${closed.length} of ${ports.length} BMCs cannot be reached: ${shorten(closed.map(({ owner }) => owner))}: ${first.address}: ${first.why}${udp}`;
  // The pods of the agent may reach the BMCs by another route than this machine.
  return [warning(message, "check address, cabling and firewall; the pods of the agent must reach the same addresses")];
}
