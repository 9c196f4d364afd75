import { buildCommand } from "@stricli/core";
import { BUNDLE_OPTIONS } from "../../config/bundle-options.ts";
import { requireOption, resolveOption } from "../../config/option.ts";
import { RUN_OPTIONS } from "../../config/run-options.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import { createKubeRuntime } from "../../kube/connection/create-runtime.ts";
import { readServerVersion } from "../../kube/api-client/server-version.ts";
import { toTime } from "../../runtime/time.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine, printNote } from "../terminal/context.ts";
import { flagsOf, switchFlag } from "../flags/flags.ts";
import { packFiles, writeArchive } from "../bundle/archive.ts";
import { finishFiles } from "../bundle/contents.ts";
import { gather } from "../bundle/gather.ts";
import type { IndexFacts } from "../bundle/index-page.ts";
import { renderIndex } from "../bundle/index-page.ts";
import type { Part } from "../bundle/part.ts";
import { Progress } from "../bundle/progress.ts";
import { AGENT_PARTS } from "../bundle/read/agents.ts";
import { DECISION_PARTS, LIVE_PART } from "../bundle/read/decisions.ts";
import { KIND_PARTS } from "../bundle/read/kinds.ts";
import { readOnly } from "../bundle/read/read-only.ts";
import { Redactor } from "../bundle/redact/redactor.ts";

const OPTIONS = {
  ...CLUSTER_OPTIONS,
  leaseName: RUN_OPTIONS.leaseName,
  nodeLeaseNamespace: RUN_OPTIONS.nodeLeaseNamespace,
  ...BUNDLE_OPTIONS,
  output: OUTPUT_OPTION,
} as const;

/** The share of the time for reading the cluster. The rest is for removing secrets. */
const GATHER_SHARE = 0.75;

type BundleFlags = Readonly<Partial<Record<keyof typeof OPTIONS, string>> & { live: boolean }>;

/** `ironfence bundle`: everything that is needed to find out what is wrong, without secrets, in one file. */
export const bundleCommand = buildCommand<BundleFlags, [], CliContext>({
  func: async function bundle(this: CliContext, { live: isLive, ...texts }) {
    const { env } = this.process;
    const { clock, random, signal, openDevice } = this;
    const options = {
      ...resolveClusterOptions(texts, env),
      leaseName: requireOption(RUN_OPTIONS.leaseName, texts, env),
      nodeLeaseNamespace: requireOption(RUN_OPTIONS.nodeLeaseNamespace, texts, env),
    };
    const bytesMax = requireOption(BUNDLE_OPTIONS.maxSize, texts, env);
    const timeoutMs = requireOption(BUNDLE_OPTIONS.timeout, texts, env);
    const nowMs = clock.nowMs();
    const endMs = clock.monotonicMs() + timeoutMs;
    const folder = `ironfence-bundle-${toTime(nowMs).replaceAll(/[^\dTZ]/gu, "")}`;
    const output = requireOption(OUTPUT_OPTION, texts, env);
    const path = resolveOption(BUNDLE_OPTIONS.file, texts, env) ?? `${folder}.tar.gz`;
    const parts: readonly Part[] = [...DECISION_PARTS, ...KIND_PARTS, ...AGENT_PARTS, ...(isLive ? [LIVE_PART] : [])];
    const progress = new Progress(this, parts.length);
    const { server, gathered } = await withRuntime(this, options, async (runtime, cluster, wire) => {
      const transport = readOnly(wire);
      // If the API server does not answer there is nothing to gather: the command fails.
      await readServerVersion(transport, signal);
      const names = { controllerName: "ironfence.io/cli", instance: "cli" };
      const reading = createKubeRuntime({ transport, clock, random, logger: createLogger("error"), ...names });
      const live = isLive ? { runtime, openDevice } : undefined;
      const deps = { runtime: reading, transport, cluster, options, live };
      const onEnd = (part: string, isComplete: boolean): void => progress.end(part, isComplete);
      return {
        server: cluster.server,
        gathered: await gather(parts, deps, { clock, timeoutMs: GATHER_SHARE * timeoutMs, onEnd }, signal),
      };
    }).finally(() => progress.clear());
    const redactor = new Redactor();
    const texted = gathered.gaps.map(({ part, why }) => ({ part, why: redactor.text(why) }));
    const finished = await finishFiles(gathered.files, redactor, bytesMax, { clock, endMs, signal });
    const gaps = [
      ...texted.map(({ part, why }) => ({ part, why: redactor.finish(why) })),
      ...finished.gaps,
      ...missedGap(redactor.missed),
    ];
    const { files } = finished;
    const facts = { nowMs, server: redactor.text(server), files, gaps, redacted: redactor.counts };
    const index = { path: "index.md", text: renderIndex(facts) };
    await writeArchive(path, await packFiles(folder, [index, ...files], nowMs));
    for (const { part, why } of gaps) printNote(this, `! ${part}: ${why}`);
    printLine(this, output === "json" ? toJson(path, facts) : path);
  },
  parameters: {
    flags: {
      live: switchFlag("Also probe the BMC of every FencingTarget now, with one login each"),
      ...flagsOf(OPTIONS),
    },
    aliases: { f: "file", o: "output", n: "namespace" },
  },
  docs: {
    brief: "Write a support bundle: objects, events, logs, metrics and checks, without secrets",
    fullDescription: [
      "The file is a tar.gz. Its index.md says what is in it, what could not be read and what was removed. Secrets are not",
      "read, and what looks like a password, token or key is removed from everything else. Names and addresses stay: read the",
      "bundle before you give it to others. Nothing is written to the cluster. With --live the command reads the Secrets of",
      "BMCs to log in to them; they are not in the bundle either.",
      "What you have no permission to read is listed, and the rest is written.",
      "Exit codes: 0 written, also if parts are missing; 1 the API server does not answer or the file cannot be written; 2",
      "wrong command line.",
    ].join("\n"),
    customUsage: [
      { input: "", brief: "into the current folder" },
      { input: "--live -f /tmp/case-4711.tar.gz", brief: "with a probe of every BMC" },
      { input: "--max-size 5Mi --timeout 1m", brief: "for a form that takes small files only" },
    ],
  },
});

function missedGap(missed: number): { part: string; why: string }[] {
  if (missed === 0) return [];
  const why = `${missed} secrets were removed where they were found, but there was no memory left to remove them elsewhere: read the files before you send them`;
  return [{ part: "removal of secrets", why }];
}

/** Describes the bundle, for scripts. Secrets were already removed from the facts. */
function toJson(file: string, { files, gaps, redacted }: IndexFacts): string {
  const entries = files.map(({ path, text, droppedLines }) => ({ path, bytes: Buffer.byteLength(text), droppedLines }));
  return JSON.stringify({ file, files: entries, missing: gaps, redacted: Object.fromEntries(redacted) });
}
