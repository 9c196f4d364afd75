import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/telemetry");
const SERVER = "test/unit/telemetry/http-server.test.ts";

export const TELEMETRY_MUTANTS: readonly Mutant[] = [
  mutant(
    "replay-without-comparison",
    "decisions/replay",
    "a replay shows a decision that has changed",
    "if (recorded === replayed) return undefined;",
    "if (recorded.length > 0) return undefined;",
    "test/sim/replay.test.ts",
  ),
  mutant(
    "probe-behind-connections",
    "connection-limit",
    "a probe of the kubelet is answered whatever the number of connections from one other address",
    "if (this.#count > this.#max) this.#closeOldest();",
    "if (this.#count > this.#max) socket.destroy();",
    SERVER,
  ),
  mutant(
    "slow-headers-for-ever",
    "http-server",
    "a connection without a request is closed",
    "requestTimeout: REQUEST_TIMEOUT_MS,\n    headersTimeout: REQUEST_TIMEOUT_MS,",
    "requestTimeout: 0,\n    headersTimeout: 0,",
    SERVER,
  ),
  mutant(
    "metrics-made-at-each-request",
    "cached-page",
    "rendering metrics takes at most a twentieth of the time",
    "if (made !== undefined && nowMs < made.untilMs) return made.answer;",
    "if (made !== undefined && nowMs < 0) return made.answer;",
    "test/unit/telemetry/cached-page.test.ts",
  ),
];
