import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { ClusterConfigError } from "../../errors.ts";

/** The parts of the process environment that decide how a cluster is found. */
export interface Environment {
  variables: Readonly<Record<string, string | undefined>>;
  homeDirectory: string;
  /** Where a pod finds its service account. */
  serviceAccountDirectory: string;
}

export function processEnvironment(): Environment {
  return {
    variables: process.env,
    homeDirectory: homedir(),
    serviceAccountDirectory: "/var/run/secrets/kubernetes.io/serviceaccount",
  };
}

/**
 * The kubeconfig files to read; undefined if a pod's service account is to be used.
 *
 * @throws ClusterConfigError if there is neither.
 */
export function findKubeconfigs(option: string | undefined, environment: Environment): string[] | undefined {
  if (option !== undefined) {
    if (existsSync(option)) return [option];
    throw new ClusterConfigError(`there is no kubeconfig at ${option}: give the path of an existing one`);
  }
  const listed = (environment.variables["KUBECONFIG"] ?? "").split(path.delimiter).filter((file) => file !== "");
  const present = listed.filter((file) => existsSync(file));
  if (present.length > 0) return present;
  const atHome = path.join(environment.homeDirectory, ".kube", "config");
  if (listed.length === 0 && existsSync(atHome)) return [atHome];
  const token = path.join(environment.serviceAccountDirectory, "token");
  if (listed.length === 0 && existsSync(token)) return undefined;
  const lookedFor =
    listed.length > 0
      ? `$KUBECONFIG names ${listed.join(", ")}, which does not exist`
      : `$KUBECONFIG is not set, and there is neither ${atHome} nor a pod's service account at ${token}`;
  throw new ClusterConfigError(
    `no Kubernetes cluster found: ${lookedFor}. Give --kubeconfig, set $KUBECONFIG, or run in a pod with a service account.`,
  );
}
