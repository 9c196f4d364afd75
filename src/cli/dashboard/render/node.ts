import type { FenceStep } from "../../explain/fence.ts";
import type { NodeExplanation } from "../../explain/words.ts";
import type { TargetEvidence, NodePage } from "../view/node-page.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { answerTag, endedCard, fenceCard, list, plug, section, timeTag } from "./parts.ts";
import { renderTimeline } from "./timeline.ts";

/** How many remediations of a node are shown as timelines. */
const TIMELINES_MAX = 10;

/** The page of one node: what is decided and why, its fences as timelines, and what its BMC has shown. */
export function renderNodePage(page: NodePage): Html {
  const { readiness, ready, fence, timelines, evidence, ended } = page;
  const answer =
    readiness === undefined
      ? html`<p class="big doubt">unknown: the cluster has no such node</p>`
      : html`<p class="big" id="summary">Could we fence it? ${answerTag(readiness)} ${readiness.reason}</p>
          <p>${readiness.message}</p>`;
  const state = ready === undefined ? undefined : html`<p>Ready is ${ready.status} since ${timeTag(ready.since)}</p>`;
  return html`${section("answer", `Node ${page.node}`, html`${answer}${state}${fence === undefined ? plug(page.plug) : undefined}`)}${
    fence === undefined
      ? undefined
      : section(
          "now",
          "Now",
          html`<ul class="cards">
            <li>${fenceCard(fence)}</li>
          </ul>`,
        )
  }${section("why", "Preconditions of a fence of this node, in order", why(page))}${section(
    "pictures",
    "Timeline of each fence",
    timelines.length === 0
      ? html`<p class="none">no remediation of this node is stored</p>`
      : html`${timelines.slice(0, TIMELINES_MAX).map(renderTimeline)}`,
  )}${section("evidence", "Target and what its BMC has shown", list(evidence, evidenceCard, "no FencingTarget names this node"))}${section(
    "ended",
    "Last fences",
    list(ended, endedCard, "no fence has ended"),
  )}`;
}

const STATES: Readonly<Record<FenceStep["state"], readonly [mark: string, text: string]>> = {
  ok: ["good", "ok"],
  blocks: ["bad", "BLOCKS"],
  unknown: ["doubt", "unknown"],
  idle: ["of", "idle"],
};

function why({ steps, healthChecks, undecided }: NodePage): Html {
  const rows = steps.map(({ step, state, found }) => {
    const [mark, text] = STATES[state];
    return html`<li><b>${step}</b> <span class="${mark}">${text}</span> ${found}</li>`;
  });
  const gap =
    undecided === undefined
      ? undefined
      : html`<p class="doubt">the decisions of health checks are not shown: ${undecided}</p>`;
  return html`<ol class="log">
      ${rows}
    </ol>
    ${gap}${healthChecks.map(check)}`;
}

function check({ healthCheck, outcome, reason, reasons, actions, nextCheck }: NodeExplanation): Html {
  const next = nextCheck === undefined ? undefined : html`<li><b>next</b> ${timeTag(nextCheck)}</li>`;
  return html`<details data-key="check ${healthCheck}">
    <summary>NodeHealthCheck ${healthCheck}: ${outcome}: ${reason}</summary>
    <ul class="log">
      ${reasons.map(
        ({ what, found }) => html`<li><b>${what}</b> ${found}</li>`,
      )}${actions.map((action) => html`<li><b>now</b> ${action}</li>`)}${next}
    </ul>
  </details>`;
}

function evidenceCard({ target, devices, facts, conditions }: TargetEvidence): Html {
  return html`<h3>FencingTarget ${target}</h3>
    <dl>
      ${devices.map(
        (device) =>
          html`<dt>device</dt>
            <dd>${device}</dd>`,
      )}${facts.map(
        ({ what, found }) =>
          html`<dt>${what}</dt>
            <dd>${found}</dd>`,
      )}${conditions.map(
        ({ type, status, reason, message, since }) =>
          html`<dt>${type}</dt>
            <dd>${status}: ${reason}: ${message} (since ${timeTag(since)})</dd>`,
      )}
    </dl>`;
}
