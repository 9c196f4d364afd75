import {
  ConditionsTable,
  DateLabel,
  DetailsGrid,
  SectionBox,
  SimpleTable,
} from "@kinvolk/headlamp-plugin/lib/CommonComponents";
import type { ReactNode } from "react";
import { useParams } from "react-router-dom";
import type { Held } from "./kinds";
import { FencingTargets, healthCheckOf, HealthChecks, remediationOf, Remediations, targetOf } from "./kinds";
import { healthCheckSummary, nodeOf, remediationSummary, targetSummary } from "./objects";
import { NodeLink, State, whyText } from "./parts";

interface Where {
  /** From the address of the page unless the map names the object. */
  name?: string;
  namespace?: string;
}

const when = (time: string | undefined): ReactNode => (time === undefined ? "-" : <DateLabel date={time} />);

export function TargetDetail(props: Where): ReactNode {
  const params = useParams<{ name: string; namespace: string }>();
  const { name = params.name, namespace = params.namespace } = props;
  return (
    <DetailsGrid
      resourceType={FencingTargets}
      name={name}
      namespace={namespace}
      withEvents
      extraInfo={(object: Held<unknown> | null) => {
        if (object === null) return [];
        const target = targetOf(object);
        const summary = targetSummary(target);
        const devices = target.spec.devices ?? [];
        return [
          { name: "Node", value: <NodeLink of={target} /> },
          { name: "Usable", value: <State {...summary} /> },
          { name: "Reason", value: whyText(summary) },
          { name: "Power", value: target.status?.powerState ?? "-" },
          { name: "Last probe", value: when(target.status?.lastProbeTime) },
          { name: "Devices", value: devices.map(({ address, level = 1 }) => `${address} (level ${level})`).join(", ") },
        ];
      }}
      extraSections={(object: Held<unknown> | null) =>
        object === null
          ? []
          : [
              <SectionBox key="outcomes" title="Last remediations">
                <SimpleTable
                  columns={[
                    { label: "Ended", getter: ({ time }) => when(time) },
                    { label: "Result", getter: ({ result }) => result },
                    { label: "Reason", getter: whyText },
                  ]}
                  data={targetOf(object).status?.outcomes ?? []}
                  emptyMessage="no remediation of this host has ended"
                />
              </SectionBox>,
              <Conditions key="conditions" of={object} />,
            ]
      }
    />
  );
}

export function RemediationDetail(props: Where): ReactNode {
  const params = useParams<{ name: string; namespace: string }>();
  const { name = params.name, namespace = params.namespace } = props;
  return (
    <DetailsGrid
      resourceType={Remediations}
      name={name}
      namespace={namespace}
      withEvents
      extraInfo={(object: Held<unknown> | null) => {
        if (object === null) return [];
        const remediation = remediationOf(object);
        const summary = remediationSummary(remediation);
        return [
          { name: "Node", value: <NodeLink of={remediation} /> },
          { name: "Phase", value: <State {...summary} /> },
          { name: "Reason", value: whyText(summary) },
          { name: "Strategy", value: remediation.spec?.strategy?.type ?? "Reboot" },
          { name: "Attempt", value: (remediation.status?.retryCount ?? 0) + 1 },
          { name: "Failure zone", value: remediation.status?.node?.zone ?? "-" },
        ];
      }}
      extraSections={(object: Held<unknown> | null) =>
        object === null
          ? []
          : [
              <SectionBox key="timeline" title="Timeline">
                <SimpleTable
                  columns={[
                    { label: "Time", getter: ({ time }) => when(time) },
                    { label: "Step", getter: ({ step }) => step },
                    { label: "Message", getter: ({ message }) => message ?? "" },
                  ]}
                  data={remediationOf(object).status?.timeline ?? []}
                  emptyMessage="no agent has begun it yet"
                />
              </SectionBox>,
              <Conditions key="conditions" of={object} />,
            ]
      }
    />
  );
}

export function HealthCheckDetail(props: Where): ReactNode {
  const params = useParams<{ name: string }>();
  const { name = params.name } = props;
  return (
    <DetailsGrid
      resourceType={HealthChecks}
      name={name}
      withEvents
      extraInfo={(object: Held<unknown> | null) => {
        if (object === null) return [];
        const check = healthCheckOf(object);
        const summary = healthCheckSummary(check);
        const { observedNodes = "-", healthyNodes = "-", unhealthyNodes = [] } = check.status ?? {};
        return [
          { name: "Phase", value: <State {...summary} /> },
          { name: "Reason", value: whyText(summary) },
          { name: "Healthy nodes", value: `${healthyNodes} of ${observedNodes}` },
          { name: "Unhealthy nodes", value: unhealthyNodes.map(({ name }) => name).join(", ") || "none" },
        ];
      }}
      extraSections={(object: Held<unknown> | null) =>
        object === null ? [] : [<Conditions key="conditions" of={object} />]
      }
    />
  );
}

function Conditions({ of }: { of: Held<unknown> }): ReactNode {
  return (
    <SectionBox title="Conditions">
      <ConditionsTable resource={of.jsonData as Parameters<typeof ConditionsTable>[0]["resource"]} />
    </SectionBox>
  );
}

/** On Headlamp's own page of a node: whether it could be fenced, and what is being done to it. */
export function NodeSection({ name }: { name: string }): ReactNode {
  const [targets, targetsError] = FencingTargets.useList();
  const [remediations] = Remediations.useList();
  // A cluster without ironfence has nothing to show here.
  if (targetsError !== null || targets === null) return null;
  const rows = [
    ...targets.map(targetOf).map((object) => ({ kind: "FencingTarget", object, summary: targetSummary(object) })),
    ...(remediations ?? [])
      .map(remediationOf)
      .map((object) => ({ kind: "BareMetalRemediation", object, summary: remediationSummary(object) })),
  ].filter(({ object }) => nodeOf(object) === name);
  return (
    <SectionBox title="Fencing">
      <SimpleTable
        columns={[
          { label: "Kind", getter: ({ kind }) => kind },
          { label: "Name", getter: ({ object }) => object.metadata.name },
          { label: "State", getter: ({ summary }) => <State {...summary} /> },
          { label: "Reason", getter: ({ summary }) => whyText(summary) },
        ]}
        data={rows}
        emptyMessage="no FencingTarget names this node, so it cannot be fenced"
      />
    </SectionBox>
  );
}
