import { apiVersionOf } from "../../../src/kube/resource.ts";
import type { ResourceType } from "../../../src/kube/resource.ts";
import type { ServedResource, Strategy } from "../resource.ts";
import { COMMON_FIELDS } from "../selectors.ts";

interface Definition extends Pick<ResourceType, "group" | "kind" | "plural" | "namespaced"> {
  shortNames: readonly string[];
  hasStatus: boolean;
  strategy: Partial<Strategy>;
}

/** Defines a built-in kind in v1, with defaults for what most kinds have in common. */
export function define(
  definition: Definition,
  peculiar: Partial<Pick<ServedResource, "decode" | "fields" | "storage" | "fromStorage" | "toStorage">> = {},
): ServedResource {
  const { group, kind, plural } = definition;
  return {
    ...definition,
    version: "v1",
    apiVersion: apiVersionOf({ group, version: "v1" }),
    singular: kind.toLowerCase(),
    categories: [],
    listKind: `${kind}List`,
    storage: `${group}/${plural}`,
    builtIn: true,
    fields: COMMON_FIELDS,
    decode: (sent) => sent,
    toStorage: (object) => object,
    ...peculiar,
    strategy: {
      unconditionalUpdate: true,
      createOnUpdate: false,
      returnsDeleted: false,
      statusTakesMetadata: true,
      prepareCreate: (object) => object,
      validate: () => [],
      ...definition.strategy,
    },
  };
}
