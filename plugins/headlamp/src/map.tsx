import { Icon } from "@iconify/react";
import { K8s } from "@kinvolk/headlamp-plugin/lib";
import type { ReactNode } from "react";
import { useMemo } from "react";
import { HealthCheckDetail, RemediationDetail, TargetDetail } from "./details";
import type { Held } from "./kinds";
import { FencingTargets, healthCheckOf, HealthChecks, remediationOf, Remediations, targetOf } from "./kinds";
import type { Health } from "./objects";
import { edgesOf, healthCheckSummary, remediationSummary, targetSummary } from "./objects";

const COLOR = "rgb(178, 58, 46)";

export function icon(name: string): ReactNode {
  return <Icon icon={name} width="100%" height="100%" color={COLOR} />;
}

/** Headlamp's own objects of nodes, between which the edges lead. */
const Nodes = K8s.ResourceClasses.Node;

type List = Held<unknown>[] | null;

/** The objects of one kind as nodes of the map. */
function mapNodes(objects: List, healthOf: (object: Held<unknown>) => Health, Detail: typeof TargetDetail) {
  return (objects ?? []).map((object) => {
    const health = healthOf(object);
    return {
      id: object.metadata.uid,
      kubeObject: object as InstanceType<typeof FencingTargets>,
      ...(health !== "" && { status: health }),
      detailsComponent: () => <Detail name={object.metadata.name} namespace={object.metadata.namespace} />,
    };
  });
}

function useObjects() {
  const [targets] = FencingTargets.useList();
  const [remediations] = Remediations.useList();
  const [checks] = HealthChecks.useList();
  const [nodes] = Nodes.useList();
  return { targets: targets as List, remediations: remediations as List, checks: checks as List, nodes };
}

/** One source for all three kinds, since their edges need all of them. */
export const mapSource = {
  id: "ironfence",
  label: "ironfence",
  icon: icon("mdi:power-plug-off"),
  useData() {
    const { targets, remediations, checks, nodes } = useObjects();
    return useMemo(() => {
      if (targets === null) return null;
      return {
        nodes: [
          ...mapNodes(targets, (object) => targetSummary(targetOf(object)).health, TargetDetail),
          ...mapNodes(remediations, (object) => remediationSummary(remediationOf(object)).health, RemediationDetail),
          ...mapNodes(checks, (object) => healthCheckSummary(healthCheckOf(object)).health, HealthCheckDetail),
        ],
        edges: edgesOf({
          nodes: nodes ?? [],
          targets: targets.map(targetOf),
          remediations: (remediations ?? []).map(remediationOf),
          checks: (checks ?? []).map(healthCheckOf),
        }),
      };
    }, [targets, remediations, checks, nodes]);
  },
};
