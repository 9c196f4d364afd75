import type { FenceReadiness } from "../../status/could-fence/could-fence.ts";
import type { NodeList, NodeQuery } from "../view/node-list.ts";
import { SLICE_NODES } from "../view/node-list.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { answerTag, nodePath, section } from "./parts.ts";

/**
 * Every node with its answer. The page has the rows of one slice. Each other slice is a link to the page with its rows,
 * and the script replaces the link by the rows when the viewer scrolls near it. So the page is small with any number of
 * nodes, and works without scripts.
 */
export function renderNodesPage(list: NodeList): Html {
  const { total, matching, filter, from, slices, rows } = list;
  const found = filter === "" ? `${total} nodes` : `${matching} of ${total} nodes match “${filter}”`;
  const body = html`<p id="summary">${found}: those that could not be fenced come first</p>
    ${slices.map((slice) => {
      const label = `Nodes ${slice.from + 1} to ${slice.from + slice.count}`;
      const isShown = slice.from === from;
      const kind = isShown ? "block" : slice.count === SLICE_NODES ? "block rest" : "block end";
      const content = isShown
        ? renderRows(rows)
        : html`<li><a href="${nodesPath({ filter, from: slice.from })}#nodes-${slice.from}">${label}</a></li>`;
      const id = `nodes-${slice.from}`;
      return html`<ul
        id="${id}"
        class="${kind}"
        aria-label="${label}"
        data-from="${slice.from}"
        data-v="${slice.version}"
      >
        ${content}
      </ul> `;
    })}`;
  return section("all", "All nodes", body);
}

/** The rows of one slice. */
export function renderRows(rows: readonly FenceReadiness[]): Html {
  return html`${rows.map((row) => {
    const { node, reason, message } = row;
    const why = reason === "" ? "" : `${reason}: ${message}`;
    return html`<li><a href="${nodePath(node)}">${node}</a> ${answerTag(row)} <span class="of">${why}</span></li> `;
  })}`;
}

/** The address of the page of all nodes. */
export function nodesPath({ filter, from }: NodeQuery): string {
  const query = new URLSearchParams();
  if (filter !== "") query.set("q", filter);
  if (from > 0) query.set("from", String(from));
  return query.size === 0 ? "/nodes" : `/nodes?${query.toString()}`;
}
