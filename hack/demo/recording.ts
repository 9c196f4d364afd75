import type { Entry } from "./chronicle.ts";

// Draws the first scene of the demo as a picture for the README. Each line appears at the time of its event. A viewer
// without animation shows all lines.

const LINE_PX = 19;
const LEFT_PX = 16;
const TOP_PX = 44;
const WIDTH_PX = 600;
/** The left edges of the columns. */
const HOST_PX = 60;
const TEXT_PX = 140;
/** Time for reading the command before the first line appears. */
const LEAD_MS = 1_000;
const COLOURS = { plain: "#d0d7de", good: "#7ee787", bad: "#ff7b72", dim: "#8b949e", ground: "#0d1117" };

/**
 * Draws the entries of one scene as a terminal, in SVG.
 *
 * @param command what the reader would type.
 */
export function renderRecording(command: string, title: string, entries: readonly Entry[]): string {
  const [first] = entries;
  const height = TOP_PX + (entries.length + 1) * LINE_PX + LEFT_PX;
  const lines = entries.map(({ atMs, host, text, tone }, index) => {
    const sinceMs = atMs - (first?.atMs ?? 0);
    const y = TOP_PX + (index + 1) * LINE_PX;
    const time = `${(sinceMs / 1_000).toFixed(1)} s`;
    return [
      `<g><set attributeName="visibility" to="hidden" begin="0s" dur="${((LEAD_MS + sinceMs) / 1_000).toFixed(2)}s"/>`,
      `<text x="${LEFT_PX}" y="${y}" fill="${COLOURS.dim}">${time}</text>`,
      `<text x="${LEFT_PX + HOST_PX}" y="${y}" fill="${COLOURS.dim}">${escaped(host)}</text>`,
      `<text x="${LEFT_PX + TEXT_PX}" y="${y}" fill="${COLOURS[tone]}">${escaped(text)}</text></g>`,
    ].join("");
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH_PX} ${height}" font-family="ui-monospace, monospace" font-size="13" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH_PX}" height="${height}" rx="8" fill="${COLOURS.ground}"/>`,
    `<text x="${LEFT_PX}" y="28" fill="${COLOURS.plain}" font-weight="bold">$ ${escaped(command)}</text>`,
    `<text x="${LEFT_PX}" y="${TOP_PX}" fill="${COLOURS.dim}">${escaped(title)}</text>`,
    ...lines,
    "</svg>",
    "",
  ].join("\n");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
