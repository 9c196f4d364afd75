import type * as z from "zod";
import type { ResourceType } from "../../kube/resource.ts";

/** A rule that the API server checks itself (CEL, `x-kubernetes-validations`). */
export interface CelRule {
  rule: string;
  message: string;
  reason?: "FieldValueInvalid" | "FieldValueForbidden" | "FieldValueRequired" | "FieldValueDuplicate";
  fieldPath?: string;
  messageExpression?: string;
  optionalOldSelf?: boolean;
}

/** One of our kinds: everything that its CRD is generated from. */
export interface CustomKind extends ResourceType {
  singular: string;
  shortNames: readonly string[];
  categories: readonly string[];
  description: string;
  spec: z.ZodType;
  /** Absent for kinds without a status, such as templates. */
  status?: z.ZodType;
  /** CEL rules at the object's root, where both `self.status` and `self.spec` can be used. */
  rootRules?: readonly CelRule[];
  printerColumns: readonly { name: string; type: string; jsonPath: string; description?: string; priority?: number }[];
}
