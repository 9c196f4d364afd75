import type { BareMetalHost, Metal3Machine } from "../../../../api/metal3/metal3.ts";
import {
  INFRASTRUCTURE_GROUP,
  INFRASTRUCTURE_VERSIONS,
  METAL3_GROUP,
  METAL3_VERSIONS,
  readBareMetalHost,
  readMetal3Machine,
} from "../../../../api/metal3/metal3.ts";
import type { KindVersions } from "../../../../kube/objects/served-kind.ts";
import { findServed } from "../../../../kube/objects/served-kind.ts";
import type { KubeObject, ResourceType } from "../../../../kube/resource.ts";
import type { KubeRuntime } from "../../../../kube/runtime.ts";
import type { Change, Watched } from "../../../../kube/watched.ts";
import { sleep } from "../../../../runtime/clock.ts";

/** How often the agent checks again whether the API server serves the kinds. Their CRDs may be installed later. */
const CRD_RETRY_MS = 60_000;
/** The same, if the API server did not answer whether it serves them. */
const UNKNOWN_RETRY_MS = 2_000;

export const HOSTS: KindVersions = { group: METAL3_GROUP, kind: "BareMetalHost", versions: METAL3_VERSIONS };
export const METAL3_MACHINES: KindVersions = {
  group: INFRASTRUCTURE_GROUP,
  kind: "Metal3Machine",
  versions: INFRASTRUCTURE_VERSIONS,
};

export interface HostWatch {
  /** Why not all hosts are known; undefined if they are. */
  readonly problem: string | undefined;
  /** The same as `problem`, but undefined if there can be no hosts because the API server does not serve their kind. */
  readonly unread: string | undefined;
  /** Why not all Metal3Machines that use hosts are known; undefined if they are, or there can be none. */
  readonly consumersUnread: string | undefined;
  /** Which of the two kinds the API server refuses or fails to list; also undefined until it has answered. */
  readonly unreadable: Unreadable | undefined;
  /** Resolves when the background tasks have ended. Abort the signal first. */
  settled(): Promise<void>;
}

/** A collection that cannot be listed. */
export interface Unreadable {
  what: string;
  problem: string;
  isForbidden: boolean;
}

/** What is known of the objects of a kind. Absent: the kind is not served. */
type View<T extends KubeObject> = Watched<T> | "Unknown" | "Absent";

/**
 * Watches BareMetalHosts and the Metal3Machines that use them, each from the time when its CRD exists.
 *
 * @param on `known` is called when the agent has learned more than single objects: that a kind is served, or has been
 * read.
 */
export function watchHosts(
  runtime: KubeRuntime,
  on: {
    host: (change: Change<BareMetalHost>) => void;
    machine: (change: Change<Metal3Machine>) => void;
    known: () => void;
  },
  signal: AbortSignal,
): HostWatch {
  let hosts: View<BareMetalHost> = "Unknown";
  let machines: View<Metal3Machine> = "Unknown";
  const watch = async <T extends KubeObject>(
    kind: KindVersions,
    trim: (raw: KubeObject) => T,
    listener: (change: Change<T>) => void,
    onView: (view: View<T>) => void,
  ): Promise<void> => {
    const onAbsent = (): void => {
      onView("Absent");
      on.known();
    };
    const type = await whenAny(runtime, kind, onAbsent, signal);
    if (type === undefined) return;
    const view = runtime.watch<T>({ type, trim }, signal);
    view.subscribe(listener);
    onView(view);
    on.known();
    view.whenSynced(signal).then(on.known, () => undefined);
  };
  const watching = Promise.all([
    watch(HOSTS, readBareMetalHost, on.host, (view) => (hosts = view)),
    watch(METAL3_MACHINES, readMetal3Machine, on.machine, (view) => (machines = view)),
  ]);
  return {
    get problem() {
      return hosts === "Absent"
        ? "BareMetalHosts are not served by the API server yet"
        : whyUnread("BareMetalHosts", hosts);
    },
    get unread() {
      return whyUnread("BareMetalHosts", hosts);
    },
    get consumersUnread() {
      return whyUnread("Metal3Machines", machines);
    },
    get unreadable() {
      return whyUnreadable("BareMetalHosts", hosts) ?? whyUnreadable("Metal3Machines", machines);
    },
    settled: async () => {
      await watching;
    },
  };
}

function whyUnread<T extends KubeObject>(what: string, view: View<T>): string | undefined {
  if (view === "Absent" || (view !== "Unknown" && view.synced)) return undefined;
  const problem = view === "Unknown" ? undefined : view.problem;
  return `${what} are not read yet (${problem ?? "wait a moment"})`;
}

function whyUnreadable<T extends KubeObject>(what: string, view: View<T>): Unreadable | undefined {
  if (view === "Absent" || view === "Unknown" || view.synced || view.problem === undefined) return undefined;
  return { what, problem: view.problem, isForbidden: view.problemCode === "Forbidden" };
}

/** Waits until a kind is served. Undefined on abort. Calls `onAbsent` if it is not served yet. */
async function whenAny(
  runtime: KubeRuntime,
  kind: KindVersions,
  onAbsent: () => void,
  signal: AbortSignal,
): Promise<ResourceType | undefined> {
  const { clock, logger } = runtime;
  for (let isLogged = false; !signal.aborted;) {
    let retryMs = UNKNOWN_RETRY_MS;
    try {
      const type = await findServed(runtime, kind, signal);
      if (type !== undefined) return type;
      if (!isLogged) logger.info({ kind: kind.kind }, "waiting for a kind that is not served yet");
      isLogged = true;
      onAbsent();
      retryMs = CRD_RETRY_MS;
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error, kind: kind.kind }, "cannot determine whether a kind is served");
    }
    await sleep(clock, retryMs, signal).catch(() => undefined);
  }
  return undefined;
}
