import { formatDuration } from "../../../runtime/duration.ts";
import { toTime } from "../../../runtime/time.ts";
import type { Timeline } from "../view/node-page.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";

const ROW = 22;
const LABEL_WIDTH = 170;
const BARS_WIDTH = 430;
const WIDTH = 720;
const BAR_MIN = 2;

/** A fence as a picture: one bar for each step, from its start to the start of the next one, on one time axis. */
export function renderTimeline({ remediation, title, startMs, endMs, isRunning, entries }: Timeline): Html {
  const spanMs = Math.max(1, endMs - startMs);
  const at = (ms: number): number => Math.round(((ms - startMs) / spanMs) * BARS_WIDTH * 10) / 10;
  const bars = entries.map(({ step, atMs }, index) => {
    const untilMs = entries[index + 1]?.atMs ?? endMs;
    const y = index * ROW;
    const x = LABEL_WIDTH + at(atMs);
    const width = Math.max(BAR_MIN, at(untilMs) - at(atMs));
    const isLast = index === entries.length - 1;
    const took = isLast && !isRunning ? "end" : durationText(untilMs - atMs);
    return html`<text x="0" y="${y + 15}">${step}</text
      ><rect
        class="${isLast && isRunning ? "running" : "bar"}"
        x="${x}"
        y="${y + 4}"
        width="${width}"
        height="14"
        rx="2"
      /><text class="took" x="${LABEL_WIDTH + BARS_WIDTH + 12}" y="${y + 15}">${took}</text>`;
  });
  const height = entries.length * ROW;
  const summary = `${entries.length} steps in ${durationText(spanMs)}${isRunning ? ", under way" : ""}`;
  return html`<h3>BareMetalRemediation ${remediation}</h3>
    <p>${title}</p>
    <div class="scroll" tabindex="0" role="group" aria-label="Timeline of ${remediation}">
      <svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Timeline of ${remediation}: ${summary}">
        <line x1="${LABEL_WIDTH}" y1="0" x2="${LABEL_WIDTH}" y2="${height}" />
        ${bars}
      </svg>
    </div>
    <details data-key="steps ${remediation}">
      <summary>${summary}</summary>
      <ol class="log">
        ${entries.map(
          ({ step, atMs, message }) =>
            html`<li><time datetime="${toTime(atMs)}">${toTime(atMs)}</time> <b>${step}</b> ${message}</li>`,
        )}
      </ol>
    </details>`;
}

/** Durations below 10 s have one decimal, because steps of a fence take fractions of a second. */
function durationText(durationMs: number): string {
  return durationMs < 10_000 ? `${(durationMs / 1_000).toFixed(1)}s` : formatDuration(durationMs);
}
