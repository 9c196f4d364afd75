import type { ServedResource } from "../resource.ts";
import { ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS } from "./admission.ts";
import { SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS } from "./authorization.ts";
import { CORE_EVENTS, EVENTS } from "./events.ts";
import { LEASES } from "./leases.ts";
import { NODES } from "./nodes.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS, STATEFUL_SETS } from "./plain.ts";
import { PODS } from "./pods.ts";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS } from "./volumes.ts";

/** Every built-in kind that is served, except CustomResourceDefinitions. */
export const BUILT_IN: readonly ServedResource[] = [
  ADMISSION_POLICIES,
  ADMISSION_POLICY_BINDINGS,
  CONFIG_MAPS,
  CORE_EVENTS,
  DEPLOYMENTS,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  SECRETS,
  SELF_SUBJECT_ACCESS_REVIEWS,
  SERVICE_ACCOUNTS,
  STATEFUL_SETS,
  SUBJECT_ACCESS_REVIEWS,
  LEASES,
  EVENTS,
  VOLUME_ATTACHMENTS,
];
