import type { ServerResponse } from "node:http";
import type { Clock } from "../../../runtime/clock.ts";
import { sleep } from "../../../runtime/clock.ts";
import { printable } from "../../../runtime/text/printable.ts";
import { toTime } from "../../../runtime/time.ts";
import type { Content, LivePages } from "./live-pages.ts";
import { messageOf } from "./live-pages.ts";

const PERIOD_MS = 2_000;
/** A connection without traffic is cut after ten seconds (`telemetry/http-server.ts`). */
const KEEP_ALIVE_MS = 4_000;
/** After this time the browser has to connect again, so that its permissions are checked again. */
const STREAM_MAX_MS = 60_000;
/** How many bytes may wait for a viewer that does not read. A viewer with more is disconnected. */
const BUFFER_BYTES_MAX = 512 * 2 ** 10;

/**
 * Sends a page whenever it changes, and the time of each read (Server-Sent Events). Reports a read that fails, so that
 * the browser does not show an old page as a new one.
 *
 * @param shownVersion the version that the browser has.
 */
export async function streamPage(
  response: ServerResponse,
  { pages, clock }: { pages: LivePages; clock: Clock },
  path: string,
  shownVersion: string,
  signal: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("the viewer is gone")));
  const within = AbortSignal.any([signal, gone.signal]);
  const endMs = clock.monotonicMs() + STREAM_MAX_MS;
  let shown = shownVersion;
  response.write("retry: 1000\n\n");
  try {
    while (clock.monotonicMs() < endMs) {
      const content = await keepingAlive(pages.content(path), response, clock, within);
      if (content instanceof Error) {
        response.write(eventText("trouble", printable(content.message)));
      } else if (content === undefined) {
        response.write(eventText("trouble", "the object that this page shows no longer exists"));
      } else {
        if (content.version !== shown) response.write(eventText("page", content.html.text, content.version));
        shown = content.version;
        response.write(eventText("beat", toTime(content.nowMs)));
      }
      if (response.writableLength > BUFFER_BYTES_MAX) return void response.destroy();
      await sleep(clock, PERIOD_MS, within);
    }
    response.end();
  } catch {
    // The viewer is gone, or the server stops.
    response.destroy();
  }
}

/** Awaits a page. Meanwhile it sends comments, which keep the connection open and which the browser ignores. */
async function keepingAlive(
  page: Promise<Content | undefined>,
  response: ServerResponse,
  clock: Clock,
  signal: AbortSignal,
): Promise<Content | Error | undefined> {
  const made = page.catch((error: unknown) => new Error(messageOf(error)));
  for (;;) {
    const timer = new AbortController();
    const pause = sleep(clock, KEEP_ALIVE_MS, AbortSignal.any([signal, timer.signal])).then(() => "pause" as const);
    pause.catch(() => undefined);
    const first = await Promise.race([made, pause]);
    timer.abort(new Error("the page is made"));
    if (first !== "pause") return first;
    response.write(": still reading\n\n");
  }
}

/** Formats one event. Each line of the data becomes a field of its own, so that no line can begin another event. */
export function eventText(event: string, data: string, id?: string): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}${lines.join("")}\n`;
}
