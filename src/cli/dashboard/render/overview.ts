import type { Held } from "../view/fences.ts";
import { PAST_DAYS } from "../view/ended-fences.ts";
import type { OverviewPage } from "../view/overview-page.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { nodesPath } from "./nodes.ts";
import { answerTag, endedCard, fenceCard, list, nodeLink, section, timeTag } from "./parts.ts";

/** How many names a group shows. The page of all nodes shows the others. */
const NAMES_MAX = 20;

/** The first page. Its sections answer the questions of an engineer on call, in the order in which they come up. */
export function renderOverviewPage(page: OverviewPage): Html {
  return html`${head(page)}${could(page)}${section("now", "Now", list(page.now, fenceCard, "no fence is under way"))}${section(
    "held",
    "Held",
    list(page.held, heldCard, "no node waits for a fence"),
  )}${section("ended", `Last ${PAST_DAYS} days`, list(page.ended, endedCard, "no fence has ended"))}${problems(page)}`;
}

function head({ leader, underWay, paused, gaps }: OverviewPage): Html {
  const mark = leader.state === "leading" ? "good" : leader.state === "unknown" ? "doubt" : "bad";
  const counts = [
    countText("hosts under way", underWay.hosts, underWay.hostsMax),
    ...underWay.zones.map(({ zone, hosts, hostsMax }) => countText(zone, hosts, hostsMax)),
  ];
  const pause =
    paused === undefined
      ? html`<p class="good">not paused</p>`
      : html`<p class="${paused.isKnown ? "bad" : "doubt"}">
          ${paused.isKnown ? "PAUSED" : "it is not known whether ironfence is paused"}:
          ${paused.text}${paused.sinceMs === undefined ? undefined : html` (${timeTag(paused.sinceMs)})`}
        </p>`;
  const missing = gaps.map((gap) => html`<p class="doubt">not shown: ${gap}</p>`);
  return section(
    "agent",
    "Agent",
    html`<p>leader <span class="${mark}">${leader.state === "none" ? "NONE: " : ""}${leader.text}</span></p>
      <p>${counts.join(" · ")}</p>
      ${pause}${missing}`,
  );
}

function countText(what: string, count: number, max: number | undefined): string {
  return max === undefined ? `${what} ${count}` : `${what} ${count}/${max}`;
}

function could({ could: { yes, byHand, no, unknown, groups, unread } }: OverviewPage): Html {
  if (unread !== undefined) {
    return section("could", "Could we fence?", html`<p class="big doubt">unknown: ${unread}</p>`);
  }
  const hand = byHand === 0 ? "" : ` (${byHand} by hand only: no health check covers them)`;
  const doubt = unknown === 0 ? undefined : html` <span class="doubt">${unknown} unknown</span>`;
  const summary = html`<p class="big" id="summary">
    <span class="good">${yes} yes</span>${hand} <span class="${no === 0 ? "none" : "bad"}">${no} no</span>${doubt}
  </p>`;
  const item = ({ answer, reason, message, nodes }: OverviewPage["could"]["groups"][number]): Html => {
    const more = nodes.length - NAMES_MAX;
    const names = nodes.slice(0, NAMES_MAX).map((name, index) => html`${index === 0 ? "" : " · "}${nodeLink(name)}`);
    const rest =
      more > 0 ? html` · <a href="${nodesPath({ filter: reason, from: 0 })}">and ${more} more</a>` : undefined;
    return html`<h3>
        ${answerTag({ answer })} ${reason}
        <span class="of">${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}</span>
      </h3>
      <p>${message}</p>
      <p>${names}${rest}</p>`;
  };
  return section(
    "could",
    "Could we fence?",
    html`${summary}${list(groups, item, "nothing keeps a node from being fenced")}
      <p><a href="/nodes">All nodes</a></p>`,
  );
}

function heldCard({ node, isLocal, reason, message, since }: Held): Html {
  return html`<h3>${nodeLink(node, isLocal)} <span class="doubt">${reason}</span></h3>
    <p>${message}</p>
    <p class="of">since ${timeTag(since)}</p>`;
}

function problems({ problems }: OverviewPage): Html {
  const item = ({ severity, kind, name = "", reason, message }: OverviewPage["problems"][number]): Html =>
    html`<h3>
        <span class="${severity === "error" ? "bad" : "doubt"}">${severity}</span> ${kind} ${name}
        <span class="of">${reason}</span>
      </h3>
      <p>${message}</p>`;
  return section("problems", "Problems", list(problems, item, "none"));
}
