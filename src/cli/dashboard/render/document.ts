import { toTime } from "../../../runtime/time.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";

/** The part of a page around its content, which does not change. */
export interface Frame {
  /** Path and query of the page, by which the script requests its updates. */
  path: string;
  title: string;
  cluster: string;
  nowMs: number;
  /** Identifies the content of the page. */
  version: string;
}

/** Renders a whole page. */
export function renderDocument({ path, title, cluster, nowMs, version }: Frame, content: Html): string {
  const link = (to: string, text: string): Html =>
    html`<a href="${to}" ${to === path.split("?", 1)[0] ? html` aria-current="page"` : undefined}>${text}</a>`;
  const onNodes = path.split("?", 1)[0] === "/nodes";
  return shell(
    title,
    html`<body data-path="${path}" data-now="${nowMs}" data-version="${version}">
      <a class="skip" href="#live">Skip to the content</a>
      <header>
        <h1>ironfence</h1>
        <nav aria-label="Pages">${link("/", "Overview")} ${link("/nodes", "All nodes")}</nav>
        <p class="of">${cluster}. As of <time id="as-of" datetime="${toTime(nowMs)}">${toTime(nowMs)}</time></p>
        <noscript><p class="doubt">Without scripts this page does not update itself: reload it.</p></noscript>
        <p id="news" role="alert"></p>
        <p id="changes" class="sr" role="status"></p>
        ${onNodes ? filterForm(new URLSearchParams(path.split("?", 2)[1]).get("q") ?? "") : undefined}
      </header>
      <main id="live" tabindex="-1">${content}</main>
      <script src="/page.js"></script>
    </body>`,
  );
}

/** Works without the script, which only saves pressing the button. */
function filterForm(filter: string): Html {
  return html`<form id="filter-form" action="/nodes" role="search">
    <label for="filter">Show nodes with</label>
    <input id="filter" name="q" type="search" autocomplete="off" maxlength="100" value="${filter}" />
    <button>Show</button>
  </form>`;
}

/** A page with one message, such as why there is nothing to see. */
export function renderNotice(title: string, body: Html): string {
  return shell(
    title,
    html`<body>
      <main>
        <h1>${title}</h1>
        ${body}
      </main>
    </body>`,
  );
}

function shell(title: string, body: Html): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${title} · ironfence</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/page.css" />
      </head>
      ${body}
    </html> `.text;
}
