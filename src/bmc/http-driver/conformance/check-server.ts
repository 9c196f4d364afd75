import { RULES } from "./rules.ts";
import { ANSWER_MS_MAX, ServerUnderTest } from "./server-under-test.ts";
import type { DriverAddress } from "../../interface/address.ts";
import type { DeviceConfig } from "../../interface/device-config.ts";
import { printable } from "../../../runtime/text/printable.ts";
import { abortReason } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** The result for one rule. Skipped: an earlier rule is broken. */
export interface RuleResult {
  rule: string;
  /** What the server must do. */
  says: string;
  result: "ok" | "failed" | "skipped";
  detail: string;
}

/** Without these, no other rule can be tried. */
const FIRST: ReadonlySet<string> = new Set(["status", "identity"]);
/** Rules with orders that the server must carry out. After one of them is broken, the rest are skipped. */
const LAST: ReadonlySet<string> = new Set(["off", "off-again", "on", "on-again", "replayed-off"]);

/**
 * Tries each rule of the contract that applies to the login, in order, on one host. It powers the host off and on
 * again. If a rule that powers the host is broken, the host is ordered on at the end.
 *
 * @param deps `powerTimeoutMs`: how long the host may take to be off, or on; `onResult` is called after each rule.
 * @throws BmcError for a key or TLS settings that cannot be used; the reason of `signal` on abort.
 */
export async function checkServer(
  address: DriverAddress,
  config: DeviceConfig,
  deps: { clock: Clock; powerTimeoutMs: number; onResult: (result: RuleResult) => void },
  signal: AbortSignal,
): Promise<readonly RuleResult[]> {
  const { onResult } = deps;
  const server = new ServerUnderTest(address, config, deps, signal);
  const results: RuleResult[] = [];
  const add = (result: RuleResult): void => {
    results.push(result);
    onResult(result);
  };
  const failed = (names: ReadonlySet<string>): boolean =>
    results.some(({ rule, result }) => names.has(rule) && result === "failed");
  const orders = new Set<string>();
  try {
    for (const rule of RULES) {
      const { name, says, needs } = rule;
      if (needs !== undefined && server.login[needs] === undefined) continue;
      const isUseless = failed(FIRST) || (LAST.has(name) && failed(orders));
      if (isUseless) {
        add({ rule: name, says, result: "skipped", detail: "an earlier rule is broken" });
        continue;
      }
      try {
        if (LAST.has(name)) orders.add(name);
        add({ rule: name, says, result: "ok", detail: printable(await rule.run(server)) });
      } catch (error) {
        if (signal.aborted) throw abortReason(signal);
        add({ rule: name, says, result: "failed", detail: error instanceof Error ? error.message : "failed" });
      }
    }
    const slowest = `the slowest answer took ${(server.slowestMs / 1_000).toFixed(1)} s`;
    const says = `answers within ${ANSWER_MS_MAX / 1_000} s`;
    add({ rule: "in-time", says, result: server.wasLate ? "failed" : "ok", detail: slowest });
    return results;
  } finally {
    if (orders.size > 0 && failed(orders)) await server.orderOn();
    await server.close();
  }
}
