import type { BareMetalHost } from "../../../api/metal3.ts";

/** Who has taken a host (`spec.consumerRef`). */
export interface Consumer {
  kind: string;
  namespace: string;
  name: string;
}

/** One text for each consumer, to file hosts under. */
export function consumerKey({ kind, namespace, name }: Consumer): string {
  return `${kind} ${namespace}/${name}`;
}

/** The consumer that a host names; without a namespace it is in the host's own. */
export function consumerOf(
  host: BareMetalHost,
  { kind, namespace, name }: NonNullable<BareMetalHost["consumerRef"]>,
): Consumer {
  return { kind, namespace: namespace ?? host.metadata.namespace, name };
}

/**
 * Why a host is not this consumer's, in words; undefined where it is, or may be: one that has no consumer yet, or not any more,
 * is nobody's beyond its own namespace.
 */
export function whyNotOf(host: BareMetalHost, consumer: Consumer): string | undefined {
  const { consumerRef } = host;
  if (consumerRef === undefined) {
    return host.metadata.namespace === consumer.namespace ? undefined : "which lies in another namespace";
  }
  const taker = consumerOf(host, consumerRef);
  if (consumerKey(taker) === consumerKey(consumer)) return undefined;
  return `which has been taken by ${taker.kind} ${taker.namespace}/${taker.name}`;
}
