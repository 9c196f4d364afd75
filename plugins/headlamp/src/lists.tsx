import { K8s } from "@kinvolk/headlamp-plugin/lib";
import { ResourceListView } from "@kinvolk/headlamp-plugin/lib/CommonComponents";
import type { ReactNode } from "react";
import type { Held } from "./kinds";
import { FencingTargets, healthCheckOf, HealthChecks, remediationOf, Remediations, ROUTES, targetOf } from "./kinds";
import type { Summary } from "./objects";
import { countNodes, healthCheckSummary, nodeText, remediationSummary, targetSummary } from "./objects";
import { NameLink, NodeLink, State, whyText } from "./parts";

/** The columns that say what state an object is in. */
function summaryColumns(label: string, summaryOf: (object: Held<unknown>) => Summary) {
  return [
    {
      label,
      getValue: (object: Held<unknown>) => summaryOf(object).state,
      render: (object: Held<unknown>) => <State {...summaryOf(object)} />,
    },
    { label: "Reason", getValue: (object: Held<unknown>) => whyText(summaryOf(object)), gridTemplate: 3 },
  ];
}

function nameColumn(routeName: string) {
  return {
    label: "Name",
    getValue: ({ metadata }: Held<unknown>) => metadata.name,
    render: (object: Held<unknown>) => <NameLink object={object} routeName={routeName} />,
  };
}

/** The count is about nodes, and about targets alone: whether an agent runs and may fence is not known here. */
export function TargetList(): ReactNode {
  const [targets] = FencingTargets.useList();
  const [nodes] = K8s.ResourceClasses.Node.useList();
  const isKnown = targets !== null && nodes !== null;
  return (
    <ResourceListView
      id="ironfence-targets"
      title={isKnown ? `Fencing targets${countText(nodes, targets)}` : "Fencing targets"}
      resourceClass={FencingTargets}
      columns={[
        nameColumn(ROUTES.target),
        "namespace",
        {
          label: "Node",
          getValue: (object) => nodeText(targetOf(object)),
          render: (object) => <NodeLink of={targetOf(object)} />,
        },
        { label: "Power", getValue: (object) => targetOf(object).status?.powerState ?? "-" },
        ...summaryColumns("Usable", (object) => targetSummary(targetOf(object))),
        "age",
      ]}
    />
  );
}

function countText(nodes: readonly { metadata: { name: string } }[], targets: readonly Held<unknown>[]): string {
  const { usable, unusable, missing, unknown } = countNodes(nodes, targets.map(targetOf));
  return `: of ${nodes.length} nodes, ${usable} usable, ${unusable} not usable, ${missing} without a target, ${unknown} not probed yet`;
}

export function RemediationList(): ReactNode {
  return (
    <ResourceListView
      id="ironfence-remediations"
      title="Remediations"
      resourceClass={Remediations}
      columns={[
        nameColumn(ROUTES.remediation),
        "namespace",
        {
          label: "Node",
          getValue: (object) => nodeText(remediationOf(object)),
          render: (object) => <NodeLink of={remediationOf(object)} />,
        },
        ...summaryColumns("Phase", (object) => remediationSummary(remediationOf(object))),
        { label: "Attempt", getValue: (object) => (remediationOf(object).status?.retryCount ?? 0) + 1 },
        "age",
      ]}
    />
  );
}

export function HealthCheckList(): ReactNode {
  return (
    <ResourceListView
      id="ironfence-health-checks"
      title="Node health checks"
      resourceClass={HealthChecks}
      columns={[
        nameColumn(ROUTES.healthCheck),
        { label: "Observed", getValue: (object) => healthCheckOf(object).status?.observedNodes ?? "-" },
        { label: "Healthy", getValue: (object) => healthCheckOf(object).status?.healthyNodes ?? "-" },
        ...summaryColumns("Phase", (object) => healthCheckSummary(healthCheckOf(object))),
        "age",
      ]}
    />
  );
}
