/** The BareMetalHost that a providerID names: by UID, or by name and the consumer for which it was provisioned. */
export type ProviderHost = { uid: string } | { namespace: string; name: string; uid?: string; consumer?: string };

/**
 * Reads the forms of a Node's or Machine's `spec.providerID` that name a BareMetalHost: `metal3://UID` and
 * `metal3://NAMESPACE/HOST/METAL3MACHINE` of Cluster API's Metal3 provider, `baremetalhost:///NAMESPACE/HOST/UID` of
 * OKD's.
 *
 * @returns undefined for any other form, which names no BareMetalHost.
 */
export function parseProviderID(text: string): ProviderHost | undefined {
  const [, scheme, path = ""] = /^(metal3|baremetalhost):\/\/(.*)$/.exec(text) ?? [];
  const parts = path.replace(/^\//, "").split("/");
  if (scheme === undefined || parts.includes("")) return undefined;
  const [first = "", name, last] = parts;
  if (parts.length === 1 && scheme === "metal3") return { uid: first };
  if (parts.length !== 3 || name === undefined || last === undefined) return undefined;
  return scheme === "metal3" ? { namespace: first, name, consumer: last } : { namespace: first, name, uid: last };
}
