import { OKD_MACHINES } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/api");

export const API_MUTANTS: readonly Mutant[] = [
  // Nodes of untrusted API servers.
  mutant(
    "node-of-any-shape",
    "kubernetes/read-node",
    "a Node whose fields have wrong types is left out and does not fail its readers",
    "if (wrong !== undefined) throw",
    'if (wrong === "") throw',
    "test/unit/api/kubernetes/read-node.test.ts",
  ),
  mutant(
    "owner-of-any-fields",
    "kubernetes/trim",
    "only the fields of an owner reference that are read are kept",
    "ownerReferences: ownerReferences.map(trimOwner)",
    "ownerReferences",
    "test/unit/api/kubernetes/read-node.test.ts",
  ),
  mutant(
    "owner-fields-unchecked",
    "kubernetes/trim",
    "metadata whose owner reference has unknown fields is copied without them",
    "Object.keys(owner).every((field) => KEPT_OWNER_FIELDS.has(field))",
    "owner !== undefined",
    "test/unit/api/kubernetes/read-node.test.ts",
  ),
  mutant(
    "identity-of-any-length",
    "kubernetes/read-node",
    "what a kubelet reports about its host is shortened, so that a status with it can be stored",
    "value.slice(0, IDENTITY_LENGTH_MAX)",
    "value",
    "test/unit/api/kubernetes/read-node.test.ts",
  ),
  // OKD.
  mutant(
    "okd-either-label",
    "okd/okd-machine",
    "either one of OKD's two labels marks a Machine of the control plane",
    "[OKD_MACHINE_ROLE_LABEL, OKD_MACHINE_TYPE_LABEL].some(",
    "[OKD_MACHINE_ROLE_LABEL].some(",
    OKD_MACHINES,
  ),
  // The stop switch.
  mutant(
    "pause-ends-by-any-text",
    "ironfence/stop-switch",
    "a pause with an invalid end lasts until a user ends it",
    "return text !== undefined && /^",
    "return text !== undefined && !/^x",
    "test/unit/remediator/controller/stop-switch.test.ts",
  ),
  mutant(
    "pause-ends-early",
    "ironfence/stop-switch",
    "a pause holds power-offs until its end",
    "nowMs >= untilMs) return false;",
    "nowMs >= untilMs - 3_600_000) return false;",
    "test/unit/remediator/controller/stop-switch.test.ts",
  ),
];
