import type { Option, FlagTexts } from "./option.ts";
import { requireOption, resolveOption } from "./option.ts";
import type { OutputFormat } from "./parsers.ts";
import { parseKubernetesName, parseOutputFormat, parseText, proposeOutputs } from "./parsers.ts";

/** Which cluster a command connects to, and which namespace in it is the agent's own. Every command has these. */
export const CLUSTER_OPTIONS = {
  kubeconfig: {
    name: "kubeconfig",
    env: "IRONFENCE_KUBECONFIG",
    defaultText: undefined,
    placeholder: "file",
    brief:
      "Kubeconfig of the cluster; by default $KUBECONFIG, then ~/.kube/config, then the service account of the pod",
    parse: parseText,
  },
  context: {
    name: "context",
    env: "IRONFENCE_CONTEXT",
    defaultText: undefined,
    placeholder: "name",
    brief: "Context of the kubeconfig; by default the current one",
    parse: parseText,
  },
  namespace: {
    name: "namespace",
    env: "POD_NAMESPACE",
    defaultText: "ironfence-system",
    placeholder: "name",
    brief: "Namespace of the agent, with its FencingTargets, Secrets, lease and pause",
    parse: parseKubernetesName,
  },
} satisfies Record<string, Option<string>>;

/** How a command prints what it found. */
export const OUTPUT_OPTION: Option<OutputFormat> = {
  name: "output",
  env: "IRONFENCE_OUTPUT",
  defaultText: "table",
  placeholder: "format",
  brief: "table for reading, json for scripts",
  parse: parseOutputFormat,
  propose: proposeOutputs,
};

/** How a command reaches its cluster. */
export interface ClusterOptions {
  kubeconfig: string | undefined;
  context: string | undefined;
  namespace: string;
}

/** @throws OptionError that names the flag or variable whose value is not valid. */
export function resolveClusterOptions(flags: FlagTexts, env: FlagTexts): ClusterOptions {
  return {
    kubeconfig: resolveOption(CLUSTER_OPTIONS.kubeconfig, flags, env),
    context: resolveOption(CLUSTER_OPTIONS.context, flags, env),
    namespace: requireOption(CLUSTER_OPTIONS.namespace, flags, env),
  };
}
