import type { KubeRuntime } from "../kube/runtime.ts";
import type { Session } from "./session.ts";
import type { Sibling } from "./snapshot.ts";
import type { FencedHost } from "./targets/host.ts";

/** What effects act on. */
export interface EffectContext {
  runtime: KubeRuntime;
  session: Session;
  /** Absent where the host cannot be found. */
  host: FencedHost | undefined;
  siblings: readonly Sibling[];
}

/** What stands in every log line about a remediation. */
export function fieldsOf(session: Session): { remediation: string; uid: string; node: string } {
  const { namespace = "", name } = session.remediation.metadata;
  return { remediation: `${namespace}/${name}`, uid: session.uid, node: session.nodeName };
}
