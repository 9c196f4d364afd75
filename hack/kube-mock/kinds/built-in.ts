import type { ServedResource } from "../resource.ts";
import { CORE_EVENTS, EVENTS } from "./events.ts";
import { LEASES } from "./leases.ts";
import { NODES } from "./nodes.ts";
import { CONFIG_MAPS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS, STATEFUL_SETS } from "./plain.ts";
import { PODS } from "./pods.ts";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS } from "./volumes.ts";

/** Every built-in kind that is served, CustomResourceDefinitions aside. */
export const BUILT_IN: readonly ServedResource[] = [
  CONFIG_MAPS,
  CORE_EVENTS,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  SECRETS,
  SERVICE_ACCOUNTS,
  STATEFUL_SETS,
  LEASES,
  EVENTS,
  VOLUME_ATTACHMENTS,
];
