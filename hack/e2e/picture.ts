import type { Page } from "playwright-core";

/** A colored box on a page. */
interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  fill: string;
}

/** A line of text at the position where the browser shows it. */
interface Line {
  x: number;
  y: number;
  width: number;
  size: number;
  bold: boolean;
  fill: string;
  text: string;
}

/** What a browser shows of a page. */
export interface Shown {
  width: number;
  height: number;
  boxes: Box[];
  lines: Line[];
}

const FONT = "system-ui, sans-serif";

/** A picture of the whole page as SVG text, which can be reviewed and compared in a diff. */
export async function pictureOf(page: Page, title: string): Promise<string> {
  const shown = await page.evaluate<Shown>(`(${COLLECT})()`);
  return renderPicture(shown, title);
}

export function renderPicture({ width, height, boxes, lines }: Shown, title: string): string {
  const rounded = (value: number): string => String(Math.round(value * 10) / 10);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${rounded(width)} ${rounded(height)}" font-family="${FONT}" role="img">`,
    `<title>${escaped(title)}</title>`,
    ...boxes.map(
      ({ x, y, width: w, height: h, fill }) =>
        `<rect x="${rounded(x)}" y="${rounded(y)}" width="${rounded(w)}" height="${rounded(h)}" fill="${fill}"/>`,
    ),
    ...lines.map(({ x, y, width: w, size, bold, fill, text }) => {
      const weight = bold ? ' font-weight="bold"' : "";
      const plain = withoutMachine(text);
      const length = plain === text ? ` textLength="${rounded(w)}"` : "";
      const place = `x="${rounded(x)}" y="${rounded(y)}"${length} font-size="${rounded(size)}"`;
      return `<text ${place}${weight} fill="${fill}">${escaped(plain)}</text>`;
    }),
    "</svg>",
    "",
  ].join("\n");
}

/** Replaces names, ports and paths of this machine. */
function withoutMachine(text: string): string {
  return text
    .replaceAll(/(127\.0\.0\.1):\d+/gu, "$1:6443")
    .replaceAll(/[\w.-]+_[\da-f]{8}-[\da-f]{4}-[\da-f-]{22}/gu, "ironfence-1")
    .replaceAll(/\/(?:tmp|var|home|root|work)\/[^\s)]*/gu, "~/.kube/config");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** Runs in the page. */
const COLLECT = String.raw`() => {
  const boxes = [], lines = [];
  const seen = (fill) => fill !== "" && fill !== "none" && !/^rgba\(.*, 0\)$/.test(fill);
  const add = (rect, fill) => {
    if (rect.width > 0 && rect.height > 0 && seen(fill)) {
      boxes.push({ x: rect.x + scrollX, y: rect.y + scrollY, width: rect.width, height: rect.height, fill });
    }
  };
  add({ x: -scrollX, y: -scrollY, width: innerWidth, height: document.documentElement.scrollHeight },
    getComputedStyle(document.body).backgroundColor);
  for (const element of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || element.matches(".sr, .skip")) continue;
    const rect = element.getBoundingClientRect();
    if (element.matches("svg rect")) add(rect, style.fill);
    else if (!(element instanceof SVGElement)) {
      add(rect, style.backgroundColor);
      const left = Number.parseFloat(style.borderLeftWidth);
      const bottom = Number.parseFloat(style.borderBottomWidth);
      if (left > 1) add({ x: rect.x, y: rect.y, width: left, height: rect.height }, style.borderLeftColor);
      else if (bottom > 0) add({ x: rect.x, y: rect.bottom - bottom, width: rect.width, height: bottom }, style.borderBottomColor);
    }
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const parent = node.parentElement;
    if (parent === null || parent.closest(".sr, .skip, script, noscript, details:not([open]) > :not(summary)")) continue;
    const style = getComputedStyle(parent);
    const range = document.createRange();
    let line;
    for (let index = 0; index < node.length; index++) {
      range.setStart(node, index);
      range.setEnd(node, index + 1);
      const [rect] = range.getClientRects();
      if (!rect || rect.width === 0) continue;
      if (line === undefined || Math.abs(rect.top - line.top) > 2) {
        line = { top: rect.top, x: rect.x + scrollX, y: rect.bottom + scrollY - rect.height * 0.24, width: 0, text: "",
          size: Number.parseFloat(style.fontSize), bold: Number(style.fontWeight) >= 600,
          fill: parent.closest("svg") ? style.fill : style.color };
        lines.push(line);
      }
      line.text += node.data[index];
      if (node.data[index].trim() !== "") line.width = rect.right + scrollX - line.x;
    }
  }
  return {
    width: innerWidth, height: document.documentElement.scrollHeight, boxes,
    lines: lines.filter(({ text }) => text.trim() !== "").map(({ top, ...line }) =>
      ({ ...line, text: line.text.replaceAll("\n", " ").trimEnd() })),
  };
}`;
