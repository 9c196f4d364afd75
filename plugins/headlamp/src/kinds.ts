import { makeCustomResourceClass } from "@kinvolk/headlamp-plugin/lib/Crd";
import type { HealthCheck, Remediation, Target } from "./objects";

/** An object as Headlamp hands it over; what it holds is typed by its kind. */
export interface Held<T> {
  jsonData: T;
  metadata: { uid: string; name: string; namespace?: string };
}

export const FencingTargets = makeCustomResourceClass({
  apiInfo: [{ group: "ironfence.io", version: "v1alpha1" }],
  kind: "FencingTarget",
  pluralName: "fencingtargets",
  singularName: "fencingtarget",
  isNamespaced: true,
});

export const Remediations = makeCustomResourceClass({
  apiInfo: [{ group: "ironfence.io", version: "v1alpha1" }],
  kind: "BareMetalRemediation",
  pluralName: "baremetalremediations",
  singularName: "baremetalremediation",
  isNamespaced: true,
});

export const HealthChecks = makeCustomResourceClass({
  apiInfo: [{ group: "remediation.medik8s.io", version: "v1alpha1" }],
  kind: "NodeHealthCheck",
  pluralName: "nodehealthchecks",
  singularName: "nodehealthcheck",
  isNamespaced: false,
});

export const targetOf = (object: Held<unknown>): Target => object.jsonData as Target;
export const remediationOf = (object: Held<unknown>): Remediation => object.jsonData as Remediation;
export const healthCheckOf = (object: Held<unknown>): HealthCheck => object.jsonData as HealthCheck;

/** Names of routes, in Headlamp's table and in links. */
export const ROUTES = {
  targets: "ironfence-targets",
  target: "ironfence-target",
  remediations: "ironfence-remediations",
  remediation: "ironfence-remediation",
  healthChecks: "ironfence-health-checks",
  healthCheck: "ironfence-health-check",
} as const;
