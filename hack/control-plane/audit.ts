import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

/** Names the folder for the audit logs of the API servers. Without it there are no audit logs. */
export const AUDIT_FOLDER_VARIABLE = "IRONFENCE_E2E_AUDIT";

/**
 * Records names, verbs and outcomes of the requests of the agent, `ironfence check` and `ironfence bundle`, and which
 * roles are applied. It records no bodies, so the log contains no data of Secrets.
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
 * Flags of an API server for an audit log in `$IRONFENCE_E2E_AUDIT`, named after the test file. There are none if the
 * variable is not set.
 *
 * @param folder gets the file with the audit policy.
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
