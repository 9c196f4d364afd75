import type { Answer } from "./answer.ts";
import type { FaultAction } from "./faults.ts";

/** An encoded answer, changed by faults of its body. */
export interface WireAnswer {
  headers: Record<string, string>;
  body: Buffer;
  /** The body is shorter than its Content-Length: the connection must be cut after it. */
  truncated: boolean;
}

export function toWire(answer: Answer, fault: FaultAction | undefined): WireAnswer {
  if (answer.body === undefined && fault?.type !== "body") {
    // RFC 9110, 8.6: a 204 must have no Content-Length, and a 304 only that of the 200 it stands for.
    const bodiless = answer.status === 204 || answer.status === 304;
    const headers = bodiless ? answer.headers : { ...answer.headers, "content-length": "0" };
    return { headers, body: Buffer.alloc(0), truncated: false };
  }
  const body = Buffer.from(bodyText(answer, fault));
  const headers = {
    "content-type": "application/json;charset=utf-8",
    ...headersOf(answer, fault),
    "content-length": String(body.length),
  };
  const truncated = fault?.type === "truncate";
  return { headers, body: truncated ? body.subarray(0, body.length / 2) : body, truncated };
}

function headersOf({ headers }: Answer, fault: FaultAction | undefined): Record<string, string> {
  if (fault?.type !== "override") return headers;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !fault.withoutHeaders.includes(name)));
}

function bodyText(answer: Answer, fault: FaultAction | undefined): string {
  if (fault?.type === "body") return fault.text;
  if (answer.body === undefined || typeof answer.body === "string") return answer.body ?? "";
  switch (fault?.type) {
    case "override": {
      const properties = { ...answer.body, ...fault.properties };
      return JSON.stringify(
        Object.fromEntries(Object.entries(properties).filter(([name]) => !fault.without.includes(name))),
      );
    }
    case "huge":
      return withOem(answer.body, `"${"x".repeat(fault.sizeBytes)}"`);
    case "deep":
      return withOem(answer.body, `${"[".repeat(fault.depth)}${"]".repeat(fault.depth)}`);
    default:
      return JSON.stringify(answer.body);
  }
}

/** The body with one more property, whose value is JSON text. */
function withOem(body: Record<string, unknown>, valueText: string): string {
  return JSON.stringify(body).replace(/\}$/, () => `,"Oem":${valueText}}`);
}
