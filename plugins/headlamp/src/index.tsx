import {
  registerDetailsViewSection,
  registerKindIcon,
  registerMapSource,
  registerRoute,
  registerSidebarEntry,
} from "@kinvolk/headlamp-plugin/lib";
import type { ComponentType } from "react";
import { HealthCheckDetail, NodeSection, RemediationDetail, TargetDetail } from "./details";
import { ROUTES } from "./kinds";
import { HealthCheckList, RemediationList, TargetList } from "./lists";
import { icon, mapSource } from "./map";

interface View {
  kind: string;
  apiGroup: string;
  label: string;
  path: string;
  object: string;
  list: string;
  detail: string;
  List: ComponentType;
  Detail: ComponentType;
  icon: string;
}

const VIEWS: readonly View[] = [
  {
    kind: "FencingTarget",
    apiGroup: "ironfence.io",
    label: "Fencing targets",
    path: "/ironfence/fencingtargets",
    object: "/:namespace/:name",
    list: ROUTES.targets,
    detail: ROUTES.target,
    List: TargetList,
    Detail: TargetDetail,
    icon: "mdi:power-plug",
  },
  {
    kind: "BareMetalRemediation",
    apiGroup: "ironfence.io",
    label: "Remediations",
    path: "/ironfence/baremetalremediations",
    object: "/:namespace/:name",
    list: ROUTES.remediations,
    detail: ROUTES.remediation,
    List: RemediationList,
    Detail: RemediationDetail,
    icon: "mdi:restart",
  },
  {
    kind: "NodeHealthCheck",
    apiGroup: "remediation.medik8s.io",
    label: "Health checks",
    path: "/ironfence/nodehealthchecks",
    object: "/:name",
    list: ROUTES.healthChecks,
    detail: ROUTES.healthCheck,
    List: HealthCheckList,
    Detail: HealthCheckDetail,
    icon: "mdi:heart-pulse",
  },
];

registerSidebarEntry({
  name: "ironfence",
  label: "ironfence",
  parent: null,
  url: "/ironfence/fencingtargets",
  icon: "mdi:power-plug-off",
});

for (const { kind, apiGroup, label, path, object, list, detail, List, Detail, icon: iconName } of VIEWS) {
  registerSidebarEntry({ name: list, label, parent: "ironfence", url: path });
  registerRoute({ path, exact: true, sidebar: list, name: list, component: () => <List /> });
  registerRoute({ path: `${path}${object}`, exact: true, sidebar: list, name: detail, component: () => <Detail /> });
  registerKindIcon(kind, { icon: icon(iconName) }, apiGroup);
}

registerMapSource(mapSource);

registerDetailsViewSection(({ resource }) =>
  resource?.kind === "Node" ? <NodeSection name={resource.metadata.name} /> : null,
);
