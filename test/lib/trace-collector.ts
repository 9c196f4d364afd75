import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A span as it arrives at a collector. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: { stringValue: string } }[];
  status?: { code: number; message: string };
}

/** The part of an OpenTelemetry collector that ironfence uses. */
export interface TraceCollector {
  endpoint: string;
  /** The status of its answers. */
  status: number;
  spans: ReceivedSpan[];
  /** All received data as text. */
  received: string;
  requests: number;
  stop(): Promise<void>;
}

interface Message {
  resourceSpans: { scopeSpans: { spans: ReceivedSpan[] }[] }[];
}

export async function startCollector(): Promise<TraceCollector> {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    collector.requests += 1;
    collector.received += body;
    const isRight = request.method === "POST" && request.url === "/v1/traces";
    if (isRight && collector.status === 200) {
      const { resourceSpans } = JSON.parse(body) as Message;
      collector.spans.push(...resourceSpans.flatMap((one) => one.scopeSpans.flatMap(({ spans }) => spans)));
    }
    response.writeHead(isRight ? collector.status : 404, { "content-type": "application/json" }).end("{}");
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const collector: TraceCollector = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    status: 200,
    spans: [],
    received: "",
    requests: 0,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  return collector;
}

export function attributeOf({ attributes }: ReceivedSpan, name: string): string | undefined {
  return attributes.find(({ key }) => key === name)?.value.stringValue;
}
