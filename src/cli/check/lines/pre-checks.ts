import { permissionText } from "../../../kube/reviews/permission-review.ts";
import type { PermissionReview } from "../../../kube/reviews/permission-review.ts";
import { shorten } from "../../status/objects/object-problems.ts";
import { unreadVersionText } from "../../cluster/unread-versions.ts";
import { API_CHECKS, oneInstallation } from "./api-checks.ts";
import type { ReachStep } from "../../../bmc/devices/reach-device.ts";
import type { Check, Finding } from "../check.ts";
import { cannotCheck, failed, passed, orOk, warning } from "../check.ts";
import type { PortFinding, PreFacts } from "../facts.ts";
import { isUnread } from "../facts.ts";

/** RBAC requires these verbs only if the user lacks the permissions that the roles grant. */
const ONLY_TO_GRANT = new Set(["bind", "escalate"]);

/** The checks before an installation: whether it will succeed, and whether anything conflicts with it. */
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
    title: "the BMCs answer this machine",
    run: judgePorts,
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

const NEXT_STEPS: Readonly<Record<ReachStep, string>> = {
  name: "correct the name, register it in DNS, or use the IP address",
  connection: "check address, port, cabling and firewall, and whether Redfish is enabled on the BMC",
  tls: "check whether Redfish is enabled on this port; if the BMC speaks plain HTTP, write redfish+http://",
  ipmi: "enable IPMI over LAN on the BMC, and allow its UDP port in firewalls",
  snmp: "enable SNMPv3 on the PDU, and allow its UDP port in firewalls; a PDU that speaks only SNMPv2c answers only a login",
};

function judgePorts({ ports, portsUnread }: PreFacts): readonly Finding[] {
  const unread = portsUnread === undefined ? [] : [cannotCheck(portsUnread)];
  const problems = [...unread, ...silentOnes(ports), ...untriedOnes(ports)];
  if (ports.length > 0 || problems.length > 0) return orOk(problems, `${ports.length} of ${ports.length} BMCs answer`);
  return [
    warning(
      "no BMC was tried: the cluster has no FencingTarget and no BareMetalHost yet",
      "name one of each network that the agent must reach: ironfence check --pre --bmc redfish://10.0.0.5 --bmc ipmi://10.0.1.5",
    ),
  ];
}

function untriedOnes(ports: readonly PortFinding[]): readonly Finding[] {
  const untried = ports.filter(({ reach }) => reach.state === "unchecked");
  if (untried.length === 0) return [];
  const names = shorten(untried.map(nameOf));
  return [
    warning(
      `${untried.length} of ${ports.length} BMCs were not tried, since SNMPv2c answers only a login: ${names}`,
      "after the installation, ironfence probe --target NAME logs in",
    ),
  ];
}

/**
 * One finding for each next step. A BMC that the user named fails the check. A BMC that an object in the cluster names
 * gives a warning, because the pods of the agent may reach it by another route.
 */
function silentOnes(ports: readonly PortFinding[]): readonly Finding[] {
  const groups = new Map<string, { isNamed: boolean; hint: string | undefined; texts: string[] }>();
  for (const port of ports) {
    const { owner, reach } = port;
    if (reach.state !== "silent" && reach.state !== "invalid") continue;
    const hint = reach.state === "silent" ? NEXT_STEPS[reach.step] : "correct the address";
    const key = `${owner === undefined} ${hint}`;
    const group = groups.get(key) ?? { isNamed: owner === undefined, hint, texts: [] };
    group.texts.push(`${nameOf(port)}: ${reach.why}`);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ isNamed, hint, texts }) => {
    const message = `${texts.length} of ${ports.length} BMCs do not answer: ${shorten(texts)}`;
    return isNamed ? failed(message, hint) : warning(message, `${hint}; the agent may have another route to them`);
  });
}

function nameOf({ owner, address }: Pick<PortFinding, "owner" | "address">): string {
  return owner === undefined ? address : `${owner}, ${address}`;
}
