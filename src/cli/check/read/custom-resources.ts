import * as z from "zod";
import { fieldAt } from "../../../api/schema/read-fields.ts";
import type { CustomKind } from "../../../api/schema/kind.ts";
import { CUSTOM_KINDS } from "../../../api/ironfence/kinds.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import type { CustomResource } from "../facts.ts";

export const CRDS: ResourceType = {
  group: "apiextensions.k8s.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};

interface Crd extends KubeObject {
  spec?: { versions?: { name?: string; schema?: { openAPIV3Schema?: unknown } }[] };
}

/** The CRDs that ironfence ships, as the cluster has them. @throws KubeError */
export function readCustomResources(client: KubeClient, signal: AbortSignal): Promise<CustomResource[]> {
  return Promise.all(
    CUSTOM_KINDS.map(async (kind) =>
      judgeCrd(kind, await findObject<Crd>(client, CRDS, { name: crdName(kind) }, signal)),
    ),
  );
}

export function crdName({ plural, group }: Pick<CustomKind, "plural" | "group">): string {
  return `${plural}.${group}`;
}

/** Compares a CRD with the schema of this version. Pure. */
export function judgeCrd(kind: CustomKind, crd: Crd | undefined): CustomResource {
  if (crd === undefined) return { kind: kind.kind, isInstalled: false, isOwn: false, missingFields: [] };
  const { metadata, spec } = crd;
  const schema = spec?.versions?.find(({ name }) => name === kind.version)?.schema?.openAPIV3Schema;
  const parts = { spec: kind.spec, ...(kind.status !== undefined && { status: kind.status }) };
  const missingFields = Object.entries(parts).flatMap(([name, part]) =>
    missingIn(schemaOf(part), propertiesOf(schema)[name], name),
  );
  const isOwn = metadata.labels?.["app.kubernetes.io/name"] === "ironfence";
  return { kind: kind.kind, isInstalled: true, isOwn, missingFields };
}

function schemaOf(part: z.ZodType): unknown {
  return z.toJSONSchema(part, { io: "input", target: "openapi-3.0", unrepresentable: "any" });
}

/** Paths of fields that `wanted` has and `present` lacks. The fields inside a missing field are not listed. */
function missingIn(wanted: unknown, present: unknown, path: string): string[] {
  if (present === undefined) return [path];
  const known = propertiesOf(present);
  const fields = Object.entries(propertiesOf(wanted)).flatMap(([name, field]) =>
    missingIn(field, known[name], `${path}.${name}`),
  );
  const items = fieldAt(wanted, "items");
  return items === undefined ? fields : [...fields, ...missingIn(items, fieldAt(present, "items"), `${path}[]`)];
}

function propertiesOf(schema: unknown): Readonly<Record<string, unknown>> {
  const properties = fieldAt(schema, "properties");
  return typeof properties === "object" && properties !== null ? { ...properties } : {};
}
