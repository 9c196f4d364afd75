import { createHash } from "node:crypto";
import type { EvaluatedNodeChecks } from "../../../detector/nodes/evaluate-once.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { cachedPage } from "../../../telemetry/cached-page.ts";
import type { Overview } from "../../status/objects/read.ts";
import { renderDocument } from "../render/document.ts";
import type { Html } from "../render/html.ts";
import { renderNodePage } from "../render/node.ts";
import { nodesPath, renderNodesPage, renderRows } from "../render/nodes.ts";
import { renderOverviewPage } from "../render/overview.ts";
import { nodePath } from "../render/parts.ts";
import type { NodeQuery } from "../view/node-list.ts";
import { nodeList, nodeQuery } from "../view/node-list.ts";
import { nodePage } from "../view/node-page.ts";
import { overviewPage } from "../view/overview-page.ts";

/** What the pages are made from: the reads of `ironfence status` and `ironfence explain node`. */
export interface PageSource {
  /**
   * How long a read is kept, as a multiple of the time that it took. The default is that of the agent, which has other
   * work.
   */
  readonly ageByCost?: number;
  readOverview(signal: AbortSignal): Promise<Overview>;
  /** What the detector decides now, or why that cannot be read. */
  readDecisions(signal: AbortSignal): Promise<EvaluatedNodeChecks | { problem: string }>;
}

/** What one page shows at one moment. */
export interface Content {
  title: string;
  cluster: string;
  nowMs: number;
  html: Html;
  /** Changes when the content of the page changes. */
  version: string;
}

const READ_TIMEOUT_MS = 60_000;
const VERSION_CHARS = 22;
/**
 * How long something has lasted (`forTag`). The script of the page updates this, so a page is not sent again because of
 * it.
 */
const LASTED = /(<time class="for" datetime="[^"]*">)[^<]*/g;

/** How many pages are kept for further viewers. The bound is needed because a filter may be any text. */
const CONTENTS_MAX = 64;

/**
 * The pages, made from reads that all viewers share. The longer a read takes, the less often it is repeated. A page is
 * made once for each read, for any number of viewers.
 */
export class LivePages {
  readonly #overview: () => Promise<Overview>;
  readonly #decisions: () => Promise<EvaluatedNodeChecks | { problem: string }>;
  #made: MadePages | undefined;

  constructor(source: PageSource, clock: Clock, signal: AbortSignal) {
    const bounded = <T>(what: string, read: (signal: AbortSignal) => Promise<T>) =>
      cachedPage(clock, () => withDeadline(clock, what, READ_TIMEOUT_MS, signal, read), source.ageByCost);
    this.#overview = bounded("reading the cluster", (within) => source.readOverview(within));
    this.#decisions = bounded("reading the decisions of health checks", (within) => source.readDecisions(within));
  }

  /**
   * @param target path and query of the page.
   * @returns undefined if there is no such page. @throws KubeError or DeadlineError if the cluster cannot be read.
   */
  async content(target: string): Promise<Content | undefined> {
    const address = addressOf(target);
    if (address === undefined) return undefined;
    const overview = await this.#overview();
    // Only the page of a node depends on decisions, which are read at other times than the overview.
    const decisions = address.page === "node" ? await this.#decide() : undefined;
    const made = this.#pagesOf(overview);
    const known = made.contents.get(address.path);
    if (known !== undefined && known.decisions === decisions) return known.content;
    const content = make(address, overview, made, decisions);
    if (made.contents.size >= CONTENTS_MAX) made.contents.clear();
    made.contents.set(address.path, { content, decisions });
    return content;
  }

  /** The rows of one slice of all nodes, for the script of that page. */
  async rows(query: URLSearchParams): Promise<string> {
    const { nodes } = this.#pagesOf(await this.#overview());
    return renderRows(nodeList(nodes, nodeQuery(query)).rows).text;
  }

  /** Renders the whole page, for a browser that opens it. */
  async document(target: string): Promise<string | undefined> {
    const content = await this.content(target);
    if (content === undefined) return undefined;
    return renderDocument({ path: addressOf(target)?.path ?? "/", ...content }, content.html);
  }

  async #decide(): Promise<EvaluatedNodeChecks | { problem: string }> {
    return this.#decisions().catch((error: unknown) => ({ problem: messageOf(error) }));
  }

  #pagesOf(overview: Overview): MadePages {
    if (this.#made?.overview !== overview) this.#made = { overview, ...overviewPage(overview), contents: new Map() };
    return this.#made;
  }
}

/** What was made from one read. */
interface MadePages extends ReturnType<typeof overviewPage> {
  overview: Overview;
  contents: Map<string, { content: Content | undefined; decisions: unknown }>;
}

function make(
  address: Address,
  overview: Overview,
  { page, nodes }: MadePages,
  decisions: EvaluatedNodeChecks | { problem: string } = { problem: "they were not read" },
): Content | undefined {
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
  if (address.page === "overview") return of("Overview", renderOverviewPage(page));
  if (address.page === "nodes") return of("All nodes", renderNodesPage(nodeList(nodes, address)));
  const node = nodePage(overview, address.name, decisions);
  return node === undefined ? undefined : of(`Node ${address.name}`, renderNodePage(node));
}

/** The address of a page that may exist. `path` is the same for all addresses of one page. */
type Address = { path: string } & (
  | { page: "overview" }
  | ({ page: "nodes" } & NodeQuery)
  | { page: "node"; name: string }
);

function addressOf(target: string): Address | undefined {
  const [path = "", query = ""] = target.split("?", 2);
  if (path === "/") return { page: "overview", path };
  if (path === "/nodes") {
    const wanted = nodeQuery(new URLSearchParams(query));
    return { page: "nodes", path: nodesPath(wanted), ...wanted };
  }
  const name = nodeNameOf(path);
  return name === undefined ? undefined : { page: "node", path: nodePath(name), name };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The node that a path names. Undefined if it is the path of another page, or if it cannot be decoded. */
function nodeNameOf(path: string): string | undefined {
  const [, encoded] = /^\/nodes\/([^/]+)$/.exec(path) ?? [];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}
