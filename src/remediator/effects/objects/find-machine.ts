import { CLUSTER_API_MACHINE, CLUSTER_API_NAMESPACE, MACHINE } from "../../../api/names/annotations.ts";
import { CLUSTER_API_GROUP, CLUSTER_API_VERSIONS } from "../../../api/cluster-api/cluster-api.ts";
import { OKD_MACHINE_GROUP, OKD_MACHINE_VERSIONS } from "../../../api/okd/okd-machine.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { apiVersionOf } from "../../../kube/resource.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { KindVersions } from "../../../kube/objects/served-kind.ts";
import { findServed } from "../../../kube/objects/served-kind.ts";
import { keyText, parseKey } from "../../../kube/watched.ts";
import type { EffectContext } from "../context/effect-context.ts";
import { readAnyMachine } from "../../machine-objects/read-machine.ts";
import type { NodeMachine } from "../../machine/model/facts/reprovision.ts";

const OKD: KindVersions = { group: OKD_MACHINE_GROUP, kind: "Machine", versions: OKD_MACHINE_VERSIONS };
const CLUSTER_API: KindVersions = { group: CLUSTER_API_GROUP, kind: "Machine", versions: CLUSTER_API_VERSIONS };

/**
 * Finds the Machine of the examined node, for a remediation that names only the node. The annotations of the node prove
 * nothing, because its kubelet can write them. The Machine must name the node too.
 */
export async function findMachine({ session, runtime }: EffectContext, signal: AbortSignal): Promise<NodeMachine> {
  const { nodeName = "" } = session;
  const refuse = (why: string): NodeMachine => ({
    found: false,
    message: `${why}, so no Machine can be deleted for it: use another spec.strategy.via`,
  });
  // A reboot may have deleted the Node.
  const { node } = session.observations.examined ?? {};
  const named = machineNamed(node?.metadata.annotations ?? session.status.backup?.annotations ?? {});
  if (named === undefined) return refuse(`node ${nodeName} has no annotation that names its Machine`);
  const { kind, namespace, name } = named;
  const what = `Machine ${keyText({ namespace, name })}`;
  const type = await findServed(runtime, kind, signal);
  if (type === undefined) return refuse(`the API server serves no ${kind.kind} of ${kind.group}`);
  try {
    const raw = await runtime.client.get<KubeObject>(type, { namespace, name }, signal);
    if (readAnyMachine(raw).nodeName !== nodeName) return refuse(`${what} does not belong to node ${nodeName}`);
    const { uid } = raw.metadata;
    return { found: true, ref: { apiVersion: apiVersionOf(type), kind: kind.kind, namespace, name, uid } };
  } catch (error) {
    if (isKubeError(error, "NotFound")) return refuse(`${what} does not exist`);
    throw error;
  }
}

/** The Machine that a node names in its annotations, with the kinds of its vendor. */
export function machineNamed(
  annotations: Record<string, string>,
): { kind: KindVersions; namespace: string; name: string } | undefined {
  const okd = annotations[MACHINE] === undefined ? undefined : parseKey(annotations[MACHINE]);
  if (okd?.namespace !== undefined) return { kind: OKD, namespace: okd.namespace, name: okd.name };
  const name = annotations[CLUSTER_API_MACHINE];
  const namespace = annotations[CLUSTER_API_NAMESPACE];
  return name === undefined || namespace === undefined ? undefined : { kind: CLUSTER_API, namespace, name };
}
