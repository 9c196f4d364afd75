// What the bundle has of client-node, which reads kubeconfigs and nothing else. Its index loads a client for every kind
// of Kubernetes as well.
export { KubeConfig } from "../../node_modules/@kubernetes/client-node/dist/config.js";
