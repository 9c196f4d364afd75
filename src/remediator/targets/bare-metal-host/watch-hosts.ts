import type { BareMetalHost, Metal3Machine } from "../../../api/metal3.ts";
import {
  INFRASTRUCTURE_GROUP,
  INFRASTRUCTURE_VERSIONS,
  METAL3_GROUP,
  METAL3_VERSIONS,
  readBareMetalHost,
  readMetal3Machine,
} from "../../../api/metal3.ts";
import type { KindVersions } from "../../../kube/served-kind.ts";
import { findServed } from "../../../kube/served-kind.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Change, Watched } from "../../../kube/watched.ts";
import { sleep } from "../../../runtime/clock.ts";

/** How often an API server that does not serve the kinds is asked again: their CRDs may come later. */
const CRD_RETRY_MS = 60_000;

const HOSTS: KindVersions = { group: METAL3_GROUP, kind: "BareMetalHost", versions: METAL3_VERSIONS };
const MACHINES: KindVersions = {
  group: INFRASTRUCTURE_GROUP,
  kind: "Metal3Machine",
  versions: INFRASTRUCTURE_VERSIONS,
};

export interface HostWatch {
  /** Why the hosts are not known in full; undefined where they are. */
  readonly problem: string | undefined;
  /** Resolves once nothing runs on in the background; abort the signal before. */
  settled(): Promise<void>;
}

/** Watches BareMetalHosts, and the Metal3Machines that take them where there are such, each from when its CRD is there. */
export function watchHosts(
  runtime: KubeRuntime,
  on: { host: (change: Change<BareMetalHost>) => void; machine: (change: Change<Metal3Machine>) => void },
  signal: AbortSignal,
): HostWatch {
  let hosts: Watched<BareMetalHost> | undefined;
  const watch = async <T extends KubeObject>(
    kind: KindVersions,
    trim: (raw: KubeObject) => T,
    listener: (change: Change<T>) => void,
    onView?: (view: Watched<T>) => void,
  ): Promise<void> => {
    const type = await whenAny(runtime, kind, signal);
    if (type === undefined) return;
    const view = runtime.watch<T>({ type, trim }, signal);
    view.subscribe(listener);
    onView?.(view);
  };
  const watching = Promise.all([
    watch(HOSTS, readBareMetalHost, on.host, (view) => {
      hosts = view;
    }),
    watch(MACHINES, readMetal3Machine, on.machine),
  ]);
  return {
    get problem() {
      if (hosts === undefined) return "BareMetalHosts are not served by the API server yet";
      return hosts.synced ? undefined : `BareMetalHosts are not read yet (${hosts.problem ?? "wait a moment"})`;
    },
    settled: async () => {
      await watching;
    },
  };
}

/** How a kind is served, as soon as it is; undefined on abort. */
async function whenAny(
  runtime: KubeRuntime,
  kind: KindVersions,
  signal: AbortSignal,
): Promise<ResourceType | undefined> {
  const { clock, logger } = runtime;
  for (let told = false; !signal.aborted;) {
    try {
      const type = await findServed(runtime, kind, signal);
      if (type !== undefined) return type;
      if (!told) logger.info({ kind: kind.kind }, "a kind is not served yet: it is waited for");
      told = true;
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error, kind: kind.kind }, "cannot find out whether a kind is served");
    }
    await sleep(clock, CRD_RETRY_MS, signal).catch(() => undefined);
  }
  return undefined;
}
