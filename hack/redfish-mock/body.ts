import type { z } from "zod";
import { failure } from "./answer.ts";
import type { Answer, Body } from "./answer.ts";

/** Parses a request body by its schema, or returns the Redfish error for it. */
export function parseBody<T>(schema: z.ZodType<T>, body: Body): { data: T } | { answer: Answer } {
  const parsed = schema.safeParse(body);
  if (parsed.success) return { data: parsed.data };
  const issue = parsed.error.issues[0];
  const place = issue?.path.join("/") ?? "";
  if (issue?.code === "unrecognized_keys") {
    const property = [...issue.path, issue.keys[0] ?? ""].join("/");
    return {
      answer: failure(400, "PropertyUnknown", `The property '${property}' is not one to be set.`, { property }),
    };
  }
  const missing = issue?.code === "invalid_type" && issue.path.length === 1 && body[place] === undefined;
  const answer = missing
    ? failure(400, "PropertyMissing", `The property '${place}' is required.`, { property: place })
    : failure(400, "PropertyValueNotInList", `The value for the property '${place}' is not acceptable.`, {
        property: place,
      });
  return { answer };
}
