import * as z from "zod";

// Types that every kind shares, from Kubernetes' meta/v1 and core/v1.

/** `metav1.Condition`. */
const conditionSchema = z.object({
  type: z.string(),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string(),
  message: z.string(),
  lastTransitionTime: z.string().meta({ format: "date-time" }),
  observedGeneration: z.int().min(0).optional(),
});
export type Condition = z.infer<typeof conditionSchema>;

/** `conditions` with `type` as the key of the list. */
export const conditionsSchema = z
  .array(conditionSchema)
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] });

/** `corev1.ObjectReference` */
export const objectReferenceSchema = z
  .object({
    apiVersion: z.string().optional(),
    kind: z.string().optional(),
    namespace: z.string().optional(),
    name: z.string().optional(),
    uid: z.string().optional(),
    resourceVersion: z.string().optional(),
    fieldPath: z.string().optional(),
  })
  .meta({ "x-kubernetes-map-type": "atomic" });
export type ObjectReference = z.infer<typeof objectReferenceSchema>;

/** `metav1.LabelSelector` */
export const labelSelectorSchema = z
  .object({
    matchLabels: z.record(z.string(), z.string()).optional(),
    matchExpressions: z
      .array(
        z.object({
          key: z.string(),
          operator: z.string(),
          values: z.array(z.string()).meta({ "x-kubernetes-list-type": "atomic" }).optional(),
        }),
      )
      .meta({ "x-kubernetes-list-type": "atomic" })
      .optional(),
  })
  .meta({ "x-kubernetes-map-type": "atomic" });
export type LabelSelector = z.infer<typeof labelSelectorSchema>;

/** A point in time (`metav1.Time`). */
export const timeSchema = z.string().meta({ format: "date-time" });

/** The name of an object (RFC 1123 subdomain). Any other text could change the path of an API request. */
export const nameSchema = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);

/** The name of a namespace (RFC 1123 label). */
export const namespaceSchema = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);

/** A Cluster of Cluster API (`cluster.x-k8s.io`), by name. */
export const clusterRefSchema = z.object({ namespace: namespaceSchema, name: nameSchema });
