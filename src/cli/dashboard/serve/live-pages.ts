import { createHash } from "node:crypto";
import type { EvaluatedNodeChecks } from "../../../detector/nodes/evaluate-once.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { cachedPage } from "../../../telemetry/cached-page.ts";
import type { Overview } from "../../status/read.ts";
import { renderDocument } from "../render/document.ts";
import type { Html } from "../render/html.ts";
import { renderNodePage } from "../render/node.ts";
import { renderNodesPage, renderOverviewPage } from "../render/overview.ts";
import { nodePage } from "../view/node-page.ts";
import { overviewPage } from "../view/overview-page.ts";

/** What the pages are made from: the reads of `ironfence status` and `ironfence explain node`. */
export interface PageSource {
  /** For how many times its cost a read is kept; by default as long as a page of the agent, which has other work. */
  readonly ageByCost?: number;
  readOverview(signal: AbortSignal): Promise<Overview>;
  /** What the detector decides now, or why that is not read. */
  readDecisions(signal: AbortSignal): Promise<EvaluatedNodeChecks | { problem: string }>;
}

/** What one page shows at one moment. */
export interface Content {
  title: string;
  cluster: string;
  nowMs: number;
  html: Html;
  /** Changes with what the page shows. */
  version: string;
}

const READ_TIMEOUT_MS = 60_000;
const VERSION_CHARS = 22;
/** How long something has lasted (`forTag`), which the script of the page counts itself: it is no news. */
const LASTED = /(<time class="for" datetime="[^"]*">)[^<]*/g;

/** The pages, made from reads that all viewers share: the more a read costs, the more seldom it is made. */
export class LivePages {
  readonly #overview: () => Promise<Overview>;
  readonly #decisions: () => Promise<EvaluatedNodeChecks | { problem: string }>;

  constructor(source: PageSource, clock: Clock, signal: AbortSignal) {
    const bounded = <T>(what: string, read: (signal: AbortSignal) => Promise<T>) =>
      cachedPage(clock, () => withDeadline(clock, what, READ_TIMEOUT_MS, signal, read), source.ageByCost);
    this.#overview = bounded("reading the cluster", (within) => source.readOverview(within));
    this.#decisions = bounded("reading the decisions of health checks", (within) => source.readDecisions(within));
  }

  /** @returns undefined if there is no such page. @throws KubeError or DeadlineError if the cluster cannot be read. */
  async content(path: string): Promise<Content | undefined> {
    const name = nodeNameOf(path);
    if (path !== "/" && path !== "/nodes" && name === undefined) return undefined;
    const overview = await this.#overview();
    const { page, nodes } = overviewPage(overview);
    const of = (title: string, html: Html): Content => ({
      title,
      cluster: page.cluster,
      nowMs: overview.nowMs,
      html,
      version: createHash("sha256")
        .update(html.text.replaceAll(LASTED, "$1"))
        .digest("base64url")
        .slice(0, VERSION_CHARS),
    });
    if (path === "/") return of("Overview", renderOverviewPage(page));
    if (name === undefined) return of("All nodes", renderNodesPage(nodes));
    const decisions = await this.#decisions().catch((error: unknown) => ({ problem: messageOf(error) }));
    const node = nodePage(overview, name, decisions);
    return node === undefined ? undefined : of(`Node ${name}`, renderNodePage(node));
  }

  /** The whole page. */
  async document(path: string): Promise<string | undefined> {
    const content = await this.content(path);
    return content === undefined ? undefined : renderDocument({ path, ...content }, content.html);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The node that a path names; undefined for another path, and for one that no name can be read from. */
function nodeNameOf(path: string): string | undefined {
  const [, encoded] = /^\/nodes\/([^/]+)$/.exec(path) ?? [];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}
