import { checkStructure } from "./json-structure.ts";
import type { ReadBudget, WorkAllowance } from "./read-budget.ts";
import type { KubeTransport, TransportRequest } from "../transport.ts";

/** What a request costs in addition to its answer: an empty answer takes 0.2 to 0.3 ms of the main thread over TLS. */
const REQUEST_MS = 0.3;

/**
 * Wraps a transport to an untrusted API server. An answer with more JSON values than the budget allows is refused
 * before it is parsed, and no request is sent when `work` is used up. The lines of a watch are checked by the code that
 * reads them.
 */
export function boundAnswers(transport: KubeTransport, budget: ReadBudget, work: WorkAllowance): KubeTransport {
  return {
    async send(request, signal) {
      const what = describe(request);
      work.charge(what, REQUEST_MS);
      const answer = await transport.send(request, signal);
      work.run(what, () => checkStructure(what, answer.body, budget.answerValues));
      return answer;
    },
    async stream(request, signal) {
      work.charge(describe(request), REQUEST_MS);
      return await transport.stream(request, signal);
    },
    close: () => transport.close(),
  };
}

function describe({ method, path }: TransportRequest): string {
  return `${method} ${path.split("?", 1)[0]}`;
}
