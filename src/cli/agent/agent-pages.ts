import type { Registry } from "prom-client";
import type { BindAddress } from "../../config/parsers.ts";
import type { RunOptions } from "../../config/resolve-run-options.ts";
import type { Clock } from "../../runtime/clock.ts";
import { cachedPage } from "../../telemetry/cached-page.ts";
import { CertificateFiles } from "../../telemetry/certificate-files.ts";
import { servePages } from "../../telemetry/http-server.ts";
import type { Authorizer, Page, Protection } from "../../telemetry/http-server.ts";
import { CommandFailure } from "../errors/failures.ts";
import type { PageSource } from "../dashboard/serve/live-pages.ts";
import { serveDashboard } from "../dashboard/serve/server.ts";
import { createTokenGuard } from "../dashboard/serve/token-guard.ts";
import { openKdumpSocket } from "../../remediator/kdump/kdump-socket.ts";
import type { KdumpSource } from "../../remediator/kdump/kdump-messages.ts";
import type { Logger } from "../../telemetry/logger.ts";

interface PageDeps {
  clock: Clock;
  logger: Logger;
}

/** @throws CommandFailure if the folder contains no usable certificate. */
export function readCertificate(folder: string, clock: Clock, what: "metrics" | "status"): CertificateFiles {
  try {
    return new CertificateFiles(folder, clock);
  } catch (error) {
    throw startFailure("CertificateUnusable", error, `mount the Secret of the ${what} certificate there`);
  }
}

function startFailure(code: "ListenFailed" | "CertificateUnusable", cause: unknown, nextStep: string): CommandFailure {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new CommandFailure(code, `${why}: ${nextStep}`, { cause });
}

/**
 * Serves the dashboard, which is off by default. It always uses TLS, and shows a page only if the API server allows the
 * user to read it.
 */
export async function serveStatusPage(
  { statusBindAddress: address, statusCertPath }: RunOptions,
  { clock, logger, source, authorizer }: PageDeps & { source: PageSource; authorizer: Authorizer },
  closeServers: (() => Promise<void>)[],
): Promise<void> {
  if (address === "off") return;
  const certificate = readCertificate(statusCertPath, clock, "status");
  const deps = { clock, source, guard: createTokenGuard(authorizer), certificate };
  const server = await serveDashboard(address, deps).catch((cause: unknown) => {
    throw startFailure("ListenFailed", cause, "choose a free address for it, or 0 to switch it off");
  });
  closeServers.push(() => server.close());
  logger.info({ host: address.host, port: server.port }, "serving status");
}

/** Receives messages of crash kernels, which is off by default. */
export async function receiveKdump(
  { kdumpBindAddress: address }: RunOptions,
  { logger }: Pick<PageDeps, "logger">,
  closeServers: (() => Promise<void>)[],
): Promise<KdumpSource | undefined> {
  if (address === "off") return undefined;
  const onError = (err: Error): void => logger.warn({ err }, "error of the socket for fence_kdump messages");
  const socket = await openKdumpSocket(address, onError).catch((cause: unknown) => {
    throw startFailure("ListenFailed", cause, "choose a free address for it, or 0 to switch it off");
  });
  closeServers.push(() => socket.close());
  logger.info({ host: address.host, port: socket.port }, "receiving fence_kdump messages");
  return socket.subscribe;
}

/**
 * Serves the pages for other programs: metrics, liveness and readiness.
 *
 * @param whyNotReady what the agent waits for; empty if it is ready.
 */
export async function servePagesOf(
  options: RunOptions,
  registry: Registry,
  whyNotReady: () => readonly string[],
  { clock, logger, protection }: PageDeps & { protection: Protection | undefined },
  closeServers: (() => Promise<void>)[],
): Promise<void> {
  const text =
    (status: number, body: string): Page =>
    () =>
      Promise.resolve({ status, contentType: "text/plain", body });
  const metrics = cachedPage(clock, async () => ({
    status: 200,
    contentType: registry.contentType,
    body: await registry.metrics(),
  }));
  const readyz: Page = () => {
    const why = whyNotReady();
    return (why.length === 0 ? text(200, "ok\n") : text(503, `${why.join("\n")}\n`))();
  };
  const start = async (
    what: string,
    address: BindAddress | "off",
    pages: Record<string, Page>,
    protection?: Protection,
  ): Promise<void> => {
    if (address === "off") return;
    const server = await servePages(address, pages, protection).catch((cause: unknown) => {
      throw startFailure("ListenFailed", cause, "choose a free address for it, or 0 to switch it off");
    });
    closeServers.push(() => server.close());
    logger.info({ host: address.host, port: server.port }, `serving ${what}`);
  };
  await start("metrics", options.metricsBindAddress, { "/metrics": metrics }, protection);
  await start("probes", options.healthProbeBindAddress, { "/healthz": text(200, "ok\n"), "/readyz": readyz });
}
