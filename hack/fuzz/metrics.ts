import { bearerOf } from "../../src/cli/agent/page-access.ts";
import { findPage, pathOf } from "../../src/telemetry/http-server.ts";
import type { Page } from "../../src/telemetry/http-server.ts";
import type { FuzzTarget } from "./target.ts";
import { must } from "./target.ts";

const page: Page = () => Promise.resolve({ status: 200, contentType: "text/plain", body: "" });
const PAGES = { "/metrics": page, "/healthz": page };

/**
 * Fuzzes requests of any client that reaches the ports of the agent. The lines of an input are method, target and
 * Authorization.
 */
export const METRICS_TARGETS: readonly FuzzTarget[] = [
  {
    name: "metrics server",
    seeds: ["GET\n/metrics\nBearer e30.e30.c2ln", "HEAD\n/healthz?verbose\n", "POST\n//metrics\nBasic YTpi"].map(
      (text) => Buffer.from(text),
    ),
    run(input) {
      const [method = "", url = "", authorization] = input.toString("latin1").split("\n");
      const found = findPage({ method, path: pathOf(url) }, PAGES);
      if (typeof found === "function") {
        must(/^\/(metrics|healthz)(\?|$)/s.test(url), "a page is found under its own path alone");
        must(method === "GET" || method === "HEAD", "a page is read");
      } else {
        must(found.status === 404 || found.status === 405, "everything else is refused");
        must(!found.body.includes(url) || url.length < 10, "what was asked is not repeated");
      }
      const token = bearerOf(authorization)?.reveal();
      must(token === undefined || /^[\x21-\x7e]+$/.test(token), "a token is one printable word");
      must(token === undefined || authorization?.endsWith(token) === true, "a token is what was sent");
    },
  },
];
