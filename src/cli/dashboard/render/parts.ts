import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { FenceReadiness } from "../../status/could-fence/could-fence.ts";
import type { Fence, ProgressStep } from "../view/fences.ts";
import type { Ended } from "../view/ended-fences.ts";
import type { DisconnectionAdvice } from "../view/disconnection.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";

// Parts that several pages share.

/** How many items a list shows. The rest is only counted, so that a page stays small in any cluster. */
export const ITEMS_MAX = 30;

export function nodePath(name: string): string {
  return `/nodes/${encodeURIComponent(name)}`;
}

/** The name of a node, as a link to its page if it has one. */
export function nodeLink(node: string, isLocal = true): Html {
  return isLocal ? html`<a class="node" href="${nodePath(node)}">${node}</a>` : html`<span class="node">${node}</span>`;
}

/** A time. The script of the page adds how long ago that was. */
export function timeTag(time: string | number | undefined): Html {
  const timeMs = typeof time === "number" ? time : parseTimeMs(time);
  if (timeMs === undefined) return html`at an unknown time`;
  const text = toTime(timeMs);
  return html`<time datetime="${text}">${text}</time>`;
}

/** How long something has lasted. The script of the page keeps it up to date. */
export function forTag(since: string | undefined, seconds: number | undefined): Html | undefined {
  const sinceMs = parseTimeMs(since);
  if (sinceMs === undefined || seconds === undefined) return undefined;
  return html`<time class="for" datetime="${toTime(sinceMs)}">${ageText(seconds)}</time>`;
}

/** Formats an age in the same way as the script of the page. */
export function ageText(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** A section with a heading. The script replaces it as a whole. `id` must come from our own code. */
export function section(id: string, title: string, body: Html): Html {
  return html`<section id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${body}
  </section> `;
}

/** A list, or the text `empty` if it has no items. */
export function list<T>(items: readonly T[], item: (of: T) => Html, empty: string): Html {
  if (items.length === 0) return html`<p class="none">${empty}</p>`;
  const more = items.length - ITEMS_MAX;
  return html`<ul class="cards">
      ${items.slice(0, ITEMS_MAX).map((each) => html`<li>${item(each)}</li> `)}
    </ul>
    ${more > 0 ? html`<p>… and ${more} more</p>` : undefined}`;
}

const STATE_WORDS: Readonly<Record<ProgressStep["state"], string>> = {
  done: "done",
  now: "under way",
  next: "to come",
  failed: "failed",
};

export function steps(of: readonly ProgressStep[]): Html {
  return html`<ol class="steps" aria-label="Steps of the fence">
    ${of.map(
      ({ name, state }) => html`<li class="${state}">${name}<span class="sr"> (${STATE_WORDS[state]})</span></li>`,
    )}
  </ol>`;
}

/**
 * Whether the power may be disconnected by hand. A wrong yes does harm, so only a page that receives updates shows a
 * yes (`.live` in the style).
 */
export function plug({ safe, why }: DisconnectionAdvice): Html {
  const answer = safe
    ? html`<b class="answer yes">yes</b><b class="answer no">unknown, because this page receives no updates</b>`
    : html`<b class="answer no">no</b>`;
  return html`<p class="plug ${safe ? "safe" : "unsafe"}">Safe to disconnect the power by hand? ${answer}: ${why}</p>`;
}

export function fenceCard(fence: Fence): Html {
  const { node, isLocal, ready, phase, reason, message, remediation } = fence;
  const state =
    ready === ""
      ? undefined
      : html`<span class="${ready === "True" ? "good" : "bad"}">${READY_WORDS[ready] ?? ready}</span>
          ${forTag(fence.readySince, fence.readyForSeconds)}`;
  const why = reason === phase ? message : `${reason}: ${message}`;
  const path = nodePath(node);
  const links = isLocal ? html` <a href="${path}#why">why</a> · <a href="${path}#evidence">evidence</a>` : undefined;
  return html`<h3>${nodeLink(node, isLocal)} ${state}</h3>
    ${steps(fence.steps)}
    <p>
      <span class="phase">${phase}</span> ${forTag(fence.stepSince, fence.stepForSeconds)}: ${why}.
      <span class="of">BareMetalRemediation ${remediation}</span>${links}
    </p>
    ${causeLine(fence.cause)}${plug(fence.plug)}`;
}

function causeLine(cause: string | undefined): Html | undefined {
  return cause === undefined ? undefined : html`<p><b>Cause of death</b> ${cause}</p>`;
}

/** The statuses of the condition Ready of a node, as kubectl shows them. */
const READY_WORDS: Readonly<Record<string, string>> = { True: "Ready", False: "NotReady", Unknown: "Unknown" };

const RESULTS: Readonly<Record<Ended["result"], string>> = {
  Succeeded: "restored",
  Failed: "failed",
  TimedOut: "given up by its health check",
  CalledOff: "called off",
};

export function endedCard({ node, isLocal, at, result, reason, message, cause, tookMs, page, runbook }: Ended): Html {
  const took = tookMs === undefined ? "" : ` in ${ageText(Math.floor(tookMs / 1_000))}`;
  const isGood = result === "Succeeded";
  return html`<h3>
      ${nodeLink(node, isLocal)}
      <span class="${isGood ? "good" : "bad"}">${RESULTS[result]}${took}</span> ${timeTag(at)}
    </h3>
    <p>${reason}: ${message}</p>
    ${causeLine(cause)}
    ${runbook === undefined ? undefined : html`<p>Runbook: <code>${runbook}</code></p>`}${page === undefined ? undefined : html`<p>Reason: <code>${page}</code></p>`}`;
}

const ANSWER_CLASSES: Readonly<Record<FenceReadiness["answer"], string>> = { yes: "good", no: "bad", unknown: "doubt" };

export function answerTag({ answer }: Pick<FenceReadiness, "answer">): Html {
  return html`<span class="${ANSWER_CLASSES[answer]}">${answer}</span>`;
}
