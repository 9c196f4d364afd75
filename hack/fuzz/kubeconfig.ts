import { KubeconfigError, parseWorkloadKubeconfig } from "../../src/clusters/kubeconfig-secret.ts";
import type { FuzzTarget } from "./target.ts";
import { must } from "./target.ts";

const FIELDS = {
  "current-context": "u@c",
  contexts: [{ name: "u@c", context: { cluster: "c", user: "u" } }],
  clusters: [{ name: "c", cluster: { server: "https://10.0.0.7:6443/k8s", "tls-server-name": "c" } }],
  users: [{ name: "u", user: { token: "t0ken" } }],
};
const BLOCK = `apiVersion: v1
clusters:
- cluster:
    server: "https://10.0.0.7:6443"
  name: c
contexts:
- context: {}
- context:
    cluster: 'c'
    user: u # comment
  name: u@c
current-context: u@c
users:
  - name: u
    user:
      username: >-
        a
      password: |
        b
`;

/** Fuzzes kubeconfigs, which any user may write who may write a Secret next to a Cluster. */
export const KUBECONFIG_TARGETS: readonly FuzzTarget[] = [
  {
    name: "kubeconfig",
    seeds: [Buffer.from(JSON.stringify(FIELDS)), Buffer.from(BLOCK)],
    refusal: KubeconfigError,
    run(input) {
      const { server, credentials } = parseWorkloadKubeconfig(input.toString("utf8"));
      must(server.startsWith("https://"), "the server is reached over HTTPS");
      for (const value of Object.values(credentials.headers)) {
        must(/^[\x20-\x7e]*$/.test(value), "no header holds a control character");
      }
    },
  },
];
