import assert from "node:assert/strict";
import { createLogger } from "../../../src/telemetry/logger.ts";
import type { KubeObject, ResourceType } from "../../../src/kube/resource.ts";
import type { Random } from "../../../src/runtime/random.ts";

export const NODE: ResourceType = { group: "", version: "v1", kind: "Node", plural: "nodes", namespaced: false };
export const CONFIG_MAP: ResourceType = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  namespaced: true,
};

/** Constant randomness: backoffs are at three quarters of their maximum. */
export const evenRandom: Random = {
  next: () => 0.5,
  uuid: () => "00000000-0000-4000-8000-000000000000",
  bytes: (size) => new Uint8Array(size).fill(7),
};

/** A logger that stores its lines. */
export function recordingLogger(): { logger: ReturnType<typeof createLogger>; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger("debug", {
    write: (line: string) => {
      lines.push(JSON.parse(line) as Record<string, unknown>);
    },
  });
  return { logger, lines };
}

export const silentLogger = createLogger("silent");

export function nodeObject(name: string, uid: string, resourceVersion: number | string): KubeObject {
  return { apiVersion: "v1", kind: "Node", metadata: { name, uid, resourceVersion: String(resourceVersion) } };
}

/** Waits on the real clock until `condition` returns true. */
export async function until(what: string, condition: () => boolean, timeoutMs = 20_000): Promise<void> {
  const endMs = Date.now() + timeoutMs;
  while (!condition()) {
    assert.ok(Date.now() < endMs, `waited ${timeoutMs} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
