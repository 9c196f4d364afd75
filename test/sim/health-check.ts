import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { LabelSelector } from "../../src/api/schema/meta.ts";
import type { World } from "./world.ts";
import { NAMESPACE } from "./world.ts";

// The health check of a simulated cluster: NodeHealthCheck `all`, with a template of BareMetalRemediations.

const ALL_NODES: LabelSelector = { matchExpressions: [{ key: "no", operator: "DoesNotExist" }] };
const TEMPLATE = { namespace: NAMESPACE, name: "reboot" };
const TEMPLATE_KIND = { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediationTemplate" };

export interface HealthCheckOptions {
  annotations?: Record<string, string>;
  /** The kind of the template to which the health check refers: ours by default. */
  kind?: { apiVersion: string; kind: string };
  /** Fields of its spec. It covers all nodes by default. */
  spec?: Record<string, unknown>;
}

/**
 * Creates the health check and its template.
 *
 * @param spec the spec of each remediation.
 */
export function createHealthCheck(world: World, spec: object, options: HealthCheckOptions = {}): void {
  createTemplate(world, spec);
  createHealthCheckAlone(world, options);
}

export function createTemplate(world: World, spec: object): void {
  world.create(BARE_METAL_REMEDIATION_TEMPLATES, TEMPLATE, { spec: { template: { spec } } });
}

/** Creates the health check without its template. */
export function createHealthCheckAlone(world: World, options: HealthCheckOptions = {}): void {
  const { annotations = {}, kind = TEMPLATE_KIND, spec } = options;
  const remediationTemplate = { ...kind, ...TEMPLATE };
  const whole = { selector: ALL_NODES, remediationTemplate, ...spec };
  world.create(NODE_HEALTH_CHECKS, { name: "all", annotations }, { spec: whole });
}
