// The part of client-node that is in the bundle: it only reads kubeconfigs. The index of client-node would also load a
// client for every kind of Kubernetes.
export { KubeConfig } from "../../node_modules/@kubernetes/client-node/dist/config.js";
