import { permissionText } from "../../../kube/reviews/permission-review.ts";
import { VERSION } from "../../../runtime/version.ts";
import { shorten } from "../../status/objects/object-problems.ts";
import { unreadVersionText } from "../../cluster/unread-versions.ts";
import type { Check, Finding } from "../check.ts";
import { cannotCheck, failed, passed, orOk, warning } from "../check.ts";
import deployed from "../read/deployed.json" with { type: "json" };
import type { Deployment, Facts, GrantedPermission } from "../facts.ts";
import { isUnread } from "../facts.ts";
import { oneInstallation } from "./api-checks.ts";
import { findingsOf } from "./problem-findings.ts";

/** How an administrator brings an installation up to date. */
const APPLY =
  "apply your installation: kubectl apply --server-side -k deploy/kustomize, or upgrade the release of the Helm chart";

/** Whether the installation is complete, runs, and has the permissions that it needs. */
export const INSTALL_CHECKS: readonly Check<Facts>[] = [
  oneInstallation((facts: Facts) => findingsOf("one-installation", facts)),
  {
    id: "custom-resources",
    category: "Installation",
    title: "the custom resources are served, and know every field of this version",
    run: (facts) => {
      const missing = findingsOf("custom-resources", facts);
      return missing.length > 0 ? missing : judgeCustomResources(facts);
    },
  },
  {
    id: "admission-policies",
    category: "Installation",
    title: "the admission policies that narrow the agent's permissions are in force",
    run: judgeAdmission,
  },
  {
    id: "replicas",
    category: "Installation",
    title: "every replica of the agent is ready, and there are at least two",
    run: ({ deployments, namespace }) =>
      isUnread(deployments) ? [cannotCheck(deployments.unread)] : judgeReplicas(deployments, namespace),
  },
  {
    id: "leader",
    category: "Installation",
    title: "an agent leads, and renews its lease",
    run: (facts) => {
      const { agent } = facts.overview;
      if (agent.state === "forbidden") return [cannotCheck(agent.message.replace(/^cannot be shown: /, ""))];
      if (agent.state !== "leading") return findingsOf("leader", facts);
      const since = agent.leadsSince === undefined ? "" : ` since ${agent.leadsSince.replace(/\.\d+Z$/, "Z")}`;
      return [passed(`${agent.leader} leads${since}, and renewed its lease ${agent.leaseAgeSeconds} s ago`)];
    },
  },
  {
    id: "agent-ready",
    category: "Installation",
    title: "the leader watches everything that its families need",
    applies: ({ overview }) => overview.agent.state === "leading",
    run: (facts) => orOk(findingsOf("agent-ready", facts), "the leader reports that it is ready"),
  },
  {
    id: "versions",
    category: "Installation",
    title: "the agent and this command have the same version",
    applies: ({ overview }) => "families" in overview.agent,
    run: judgeVersions,
  },
  {
    id: "agent-permissions",
    category: "Installation",
    title: "the agent has the permissions that its families need",
    run: (facts) => {
      const { permissions } = facts;
      return isUnread(permissions) ? [cannotCheck(permissions.unread)] : judgePermissions(permissions, facts);
    },
  },
  {
    id: "families",
    category: "Installation",
    title: "every kind that the leader's families read is served",
    applies: ({ familyKinds }) => familyKinds.length > 0,
    run: ({ familyKinds }) =>
      orOk(
        familyKinds.flatMap((found) => {
          if (found.state === "read") return [];
          if (found.state === "unread") return [failed(unreadVersionText(found))];
          const { kind, family } = found;
          return [
            failed(
              `the cluster does not serve ${kind.kind} of ${kind.group}, so family ${family} does nothing`,
              `install its provider, or take ${family} out of --families`,
            ),
          ];
        }),
        [...new Set(familyKinds.map(({ family }) => family))].join(", "),
      ),
  },
];

function judgeCustomResources({ customResources }: Facts): readonly Finding[] {
  if (isUnread(customResources)) return [cannotCheck(customResources.unread)];
  return orOk(
    customResources.flatMap(({ kind, isInstalled, isOwn, missingFields }) => {
      // Another check reports a missing CRD of NodeHealthCheck if a family needs it.
      if (!isInstalled && kind !== "NodeHealthCheck") {
        return [failed(`there is no CRD of ${kind}`, APPLY)];
      }
      if (missingFields.length === 0) return [];
      const message = `the CRD of ${kind} does not know ${shorten(missingFields)}, so the API server drops what the agent writes there`;
      return isOwn
        ? [failed(message, `apply the CRDs of this version: ${APPLY}`)]
        : [
            warning(
              message,
              "another operator installed this CRD: upgrade that operator, or apply deploy/node-health-check",
            ),
          ];
    }),
    customResources.map(({ kind }) => kind).join(", "),
  );
}

function judgeAdmission({ admission, namespace, serviceAccount }: Facts): readonly Finding[] {
  if (isUnread(admission)) return [cannotCheck(admission.unread)];
  const names = deployed.admissionPolicies.map(({ name }) => name);
  const missing = names.filter((name) => !admission.policies.has(name));
  const idle = names.filter((name) => admission.policies.has(name) && !admission.enforced.has(name));
  const agent = `system:serviceaccount:${namespace}:${serviceAccount}`;
  const others = [...admission.users].filter(([, user]) => user !== agent).map(([name]) => name);
  return orOk(
    [
      ...(missing.length === 0
        ? []
        : [
            warning(
              `the cluster lacks ${missing.join(", ")}, so a stolen token of the agent has more permissions, or objects that a running fence needs can be deleted`,
              APPLY,
            ),
          ]),
      ...(idle.length === 0 ? [] : [warning(`no binding enforces ${idle.join(", ")}`, APPLY)]),
      ...(others.length === 0
        ? []
        : [
            warning(
              `the agent runs as ${agent}, and ${others.join(", ")} name${others.length === 1 ? "s" : ""} another service account`,
              "change their matchConditions (deploy/kustomize/agent-admission.yaml, or the values of the Helm chart)",
            ),
          ]),
    ],
    `${names.length} policies are bound`,
  );
}

function judgeReplicas(deployments: readonly Deployment[], namespace: string): readonly Finding[] {
  const [first] = deployments;
  if (first === undefined) {
    const message = `namespace ${namespace} has no Deployment with the label app.kubernetes.io/name=ironfence`;
    return [
      warning(
        `${message}, so it is not known how many agents run`,
        "apply your installation (deploy/kustomize or the Helm chart), or name the agent's namespace with --namespace",
      ),
    ];
  }
  return deployments.flatMap(({ metadata, spec, status }) => {
    const what = `Deployment ${metadata.namespace ?? ""}/${metadata.name}`;
    const wanted = spec?.replicas ?? 1;
    const { readyReplicas = 0, updatedReplicas = 0, replicas = 0, observedGeneration = 0 } = status ?? {};
    const hint = `kubectl -n ${namespace} describe pods -l app.kubernetes.io/name=ironfence`;
    if (wanted === 0)
      return [
        failed(`${what} asks for no replica`, `kubectl -n ${namespace} scale deployment ${metadata.name} --replicas=2`),
      ];
    if (readyReplicas === 0) return [failed(`${what} has 0 of ${wanted} replicas ready`, hint)];
    if (readyReplicas < wanted) {
      return [
        warning(
          `${what} has ${readyReplicas} of ${wanted} replicas ready, so another agent may not be there to take over`,
          hint,
        ),
      ];
    }
    const isOld = observedGeneration < (metadata.generation ?? 0) || updatedReplicas < wanted || replicas > wanted;
    if (isOld)
      return [
        warning(
          `${what} is still being rolled out`,
          `kubectl -n ${namespace} rollout status deployment ${metadata.name}`,
        ),
      ];
    if (wanted === 1) {
      return [
        warning(
          `${what} has one replica: if its node dies, nothing is fenced until another pod runs`,
          "run two replicas",
        ),
      ];
    }
    return [passed(`${readyReplicas} of ${wanted} replicas are ready`)];
  });
}

function judgeVersions({ overview: { agent } }: Facts): readonly Finding[] {
  const version = "version" in agent ? agent.version : undefined;
  if (version === VERSION) return [passed(VERSION)];
  const message = `the leader has version ${version ?? "0.1.0 or older"}, and this command has ${VERSION}`;
  return [
    warning(
      `${message}: this command checks what its own version needs`,
      "use the command of the agent's version, or finish the upgrade",
    ),
  ];
}

function judgePermissions(reviews: readonly GrantedPermission[], facts: Facts): readonly Finding[] {
  const missing = Map.groupBy(
    reviews.filter(({ allowed }) => !allowed),
    ({ folder }) => folder,
  );
  const who = `system:serviceaccount:${facts.namespace}:${facts.serviceAccount}`;
  return orOk(
    [...missing].map(([folder, lacked]) =>
      failed(
        `${who} lacks ${shorten(lacked.map(({ permission }) => permissionText(permission)))}`,
        `apply your installation: kubectl apply --server-side -k ${folder}, or upgrade the release of the Helm chart`,
      ),
    ),
    `${who} has all ${reviews.length} of them`,
  );
}
