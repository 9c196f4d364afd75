import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import { CLONED_FROM_GROUP_KIND, CLONED_FROM_NAME, CLUSTER_NAME_LABEL } from "../../../api/cluster-api/cluster-api.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { apiVersionOf } from "../../../kube/resource.ts";
import type { NewRemediation, Template } from "../../shared/model/template.ts";
import { ownAnnotations } from "../../shared/model/template.ts";
import type { ObservedNode } from "./observed-machine.ts";

/**
 * Builds the remediation request for a Machine, by the contract that remediators of infrastructure providers rely on.
 * The request has the name of the Machine, so that a Machine never has two requests of one kind, and the Machine owns
 * it.
 */
export function buildRequest(
  template: Template,
  machine: Machine,
  node: ObservedNode,
  zoneLabel: string,
): NewRemediation {
  const { type, labels, annotations, remediationSpec } = template;
  const { apiVersion, kind, metadata, clusterName } = machine;
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      labels: { ...labels, ...(clusterName !== "" && { [CLUSTER_NAME_LABEL]: clusterName }) },
      annotations: {
        ...annotations,
        ...ownAnnotations(template, node.state === "there" ? node.node : undefined, zoneLabel),
        [CLONED_FROM_NAME]: template.name,
        [CLONED_FROM_GROUP_KIND]: `${type.kind}Template.${type.group}`,
      },
      ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid }],
    },
    spec: remediationSpec,
  };
}

/** The UID of the Machine that a request is for; undefined if no MachineHealthCheck created the object. */
export function machineUidOf(object: KubeObject): string | undefined {
  const { annotations, ownerReferences = [] } = object.metadata;
  if (annotations?.[CLONED_FROM_GROUP_KIND] === undefined) return undefined;
  return ownerReferences.find(({ kind }) => kind === "Machine")?.uid;
}
