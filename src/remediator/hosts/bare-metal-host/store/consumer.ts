import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";

/** The object that uses a host (`spec.consumerRef`). */
export interface Consumer {
  kind: string;
  namespace: string;
  name: string;
}

/** One text for each consumer, as a key for hosts. */
export function consumerKey({ kind, namespace, name }: Consumer): string {
  return `${kind} ${namespace}/${name}`;
}

/** The consumer that a host names. Without a namespace, it is in the namespace of the host. */
export function consumerOf(
  host: BareMetalHost,
  { kind, namespace, name }: NonNullable<BareMetalHost["consumerRef"]>,
): Consumer {
  return { kind, namespace: namespace ?? host.metadata.namespace, name };
}

/**
 * Why a host does not belong to this consumer; undefined if it does, or may: a host without a consumer can only belong
 * to consumers in its own namespace.
 */
export function whyNotOf(host: BareMetalHost, consumer: Consumer): string | undefined {
  const { consumerRef } = host;
  if (consumerRef === undefined) {
    return host.metadata.namespace === consumer.namespace ? undefined : "which is in another namespace";
  }
  const present = consumerOf(host, consumerRef);
  if (consumerKey(present) === consumerKey(consumer)) return undefined;
  return `which is used by ${present.kind} ${present.namespace}/${present.name}`;
}
