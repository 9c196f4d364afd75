import { Link, StatusLabel } from "@kinvolk/headlamp-plugin/lib/CommonComponents";
import type { ReactNode } from "react";
import type { Held } from "./kinds";
import type { Remediation, Summary, Target } from "./objects";
import { nodeOf, nodeText } from "./objects";

export function State({ health, state }: Pick<Summary, "health" | "state">): ReactNode {
  return <StatusLabel status={health}>{state}</StatusLabel>;
}

/** The node, with a link if it is of this cluster. */
export function NodeLink({ of }: { of: Remediation | Target }): ReactNode {
  const name = nodeOf(of);
  if (name === undefined) return <>{nodeText(of)}</>;
  return (
    <Link routeName="node" params={{ name }}>
      {name}
    </Link>
  );
}

/** The name of an object, with a link to its page. */
export function NameLink({ object, routeName }: { object: Held<unknown>; routeName: string }): ReactNode {
  const { name, namespace } = object.metadata;
  return (
    <Link routeName={routeName} params={namespace === undefined ? { name } : { namespace, name }}>
      {name}
    </Link>
  );
}

/** A reason of ironfence with its explanation. */
export function whyText({ reason, message }: Pick<Summary, "reason" | "message">): string {
  return reason === "" || message === "" ? `${reason}${message}` : `${reason}: ${message}`;
}
