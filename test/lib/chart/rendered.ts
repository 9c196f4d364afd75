import type { Manifest } from "../../../hack/lib/apply.ts";

// Access to the objects of one rendering, for the cases of values.

/** The field of an object at a path such as `spec.containers.0.image`; undefined if the path does not exist. */
export function at(object: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => (Object(value) as Record<string, unknown>)[key], object);
}

/** The items of a list at a path; empty if there is no list. */
export function items(object: unknown, path: string): unknown[] {
  const value = at(object, path);
  return Array.isArray(value) ? value : [];
}

/** The objects of one rendering. */
export class Rendered {
  readonly objects: readonly Manifest[];

  constructor(objects: readonly Manifest[]) {
    this.objects = objects;
  }

  find(kind: string, name: string, namespace?: string): Manifest | undefined {
    return this.objects.find(
      ({ kind: ofObject, metadata }) =>
        ofObject === kind && metadata.name === name && (namespace === undefined || metadata.namespace === namespace),
    );
  }

  /** A field of an object; undefined if the object does not exist. */
  field(kind: string, name: string, path: string): unknown {
    return at(this.find(kind, name), path);
  }

  names(kind: string): string[] {
    return this.objects.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name);
  }

  deployment(path: string): unknown {
    return this.field("Deployment", "ironfence", `spec.${path}`);
  }

  pod(path: string): unknown {
    return this.deployment(`template.spec.${path}`);
  }

  container(path: string): unknown {
    return this.pod(`containers.0.${path}`);
  }

  /** The value of an option of the agent. */
  option(name: string): string | undefined {
    const args = this.container("args") as string[];
    return args.find((argument) => argument.startsWith(`--${name}=`))?.slice(name.length + 3);
  }

  /** The rules of the policy that allow a port, by its number or name. */
  rules(direction: "ingress" | "egress", port: number | string): unknown[] {
    const rules = items(this.find("NetworkPolicy", "ironfence"), `spec.${direction}`);
    return rules.filter((rule) => items(rule, "ports").some((allowed) => at(allowed, "port") === port));
  }
}

export interface Case {
  set: object;
  /** Reads the part of the rendered objects that the value affects. */
  read: (rendered: Rendered) => unknown;
  before: unknown;
  after: unknown;
}

export const networksOf = (rules: readonly unknown[]): unknown =>
  rules.map((rule) => items(rule, "to").map((peer) => at(peer, "ipBlock.cidr")));
export const subjectsOf = (binding: Manifest | undefined): unknown => at(binding, "subjects");
export const labelOf = (object: Manifest | undefined, label: string): unknown =>
  (object?.metadata["labels"] as Record<string, string> | undefined)?.[label];
