import { writeFile } from "node:fs/promises";
import { stringify } from "yaml";

/** The credentials of one user. */
export type Credentials = { certPem: string; keyPem: string } | { token: string };

/** The address of an API server, and the certificate authority that signed its certificate. */
export interface ApiAddress {
  server: string;
  caPem: string;
}

/** Writes a kubeconfig with inline credentials that only the owner of the file can read. */
export async function writeKubeconfig(path: string, cluster: ApiAddress, credentials: Credentials): Promise<void> {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const user =
    "token" in credentials
      ? { token: credentials.token }
      : {
          "client-certificate-data": base64(credentials.certPem),
          "client-key-data": base64(credentials.keyPem),
        };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "local", cluster: { server: cluster.server, "certificate-authority-data": base64(cluster.caPem) } },
    ],
    users: [{ name: "user", user }],
    contexts: [{ name: "local", context: { cluster: "local", user: "user" } }],
    "current-context": "local",
  };
  await writeFile(path, stringify(config), { mode: 0o600 });
}
