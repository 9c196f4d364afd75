import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

/** The folder in which API servers keep what the agent asked of them; none where it is not set. */
export const AUDIT_FOLDER_VARIABLE = "IRONFENCE_E2E_AUDIT";

/**
 * Names, verbs and outcomes of what the agent, `ironfence check` and `ironfence bundle` ask, and which roles are
 * applied; no bodies, so a Secret's content is in none of them.
 */
const POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users:
      - system:serviceaccount:ironfence-system:ironfence
      - system:serviceaccount:ironfence-system:ironfence-check
      - system:serviceaccount:ironfence-system:ironfence-bundle
  - level: Metadata
    users: [admin]
    verbs: [patch]
    resources:
      - group: rbac.authorization.k8s.io
        resources: [roles, clusterroles]
  - level: None
`;

let logs = 0;

/**
 * The API server's flags for an audit log of its own in `$IRONFENCE_E2E_AUDIT`, named after the test file; none without
 * that folder.
 *
 * @param folder where the policy is put.
 */
export async function auditArguments(folder: string): Promise<string[]> {
  const auditFolder = process.env[AUDIT_FOLDER_VARIABLE];
  if (auditFolder === undefined) return [];
  const policy = join(folder, "audit-policy.yaml");
  await writeFile(policy, POLICY);
  await mkdir(auditFolder, { recursive: true });
  logs += 1;
  const name = `${basename(process.argv[1] ?? "control-plane", ".test.ts")}.${process.pid}.${logs}.log`;
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(auditFolder, name)}`];
}
