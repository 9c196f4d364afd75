import { stringify } from "yaml";

type Fields = Record<string, unknown>;

/** A kubeconfig's text with one context, whose cluster and user may be changed. `undefined` leaves a field out. */
export function kubeconfigText({
  cluster = {},
  user = {},
  root = {},
}: { cluster?: Fields; user?: Fields; root?: Fields } = {}): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://10.0.0.7:6443", ...cluster } }],
    users: [{ name: "u", user: { token: "t0ken", ...user } }],
    contexts: [{ name: "u@c", context: { cluster: "c", user: "u" } }],
    "current-context": "u@c",
    ...root,
  });
}

/** The encoding of PEM texts in kubeconfigs. */
export const base64 = (text: string): string => Buffer.from(text).toString("base64");
