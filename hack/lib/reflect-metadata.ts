// @peculiar/x509 2.x resolves its algorithms through a container (tsyringe) that refuses to load without the Reflect metadata
// API. Nothing in it uses more than the three functions below, so a package for them is not worth its place in the tree.

type Metadata = Map<unknown, unknown>;

const metadataOf = new WeakMap<object, Metadata>();

function ownMetadata(key: unknown, target: object): unknown {
  return metadataOf.get(target)?.get(key);
}

function metadata(key: unknown, target: object): unknown {
  for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    if (metadataOf.get(at)?.has(key) === true) return ownMetadata(key, at);
  }
  return undefined;
}

function defineMetadata(key: unknown, value: unknown, target: object): void {
  const known = metadataOf.get(target) ?? new Map<unknown, unknown>();
  metadataOf.set(target, known.set(key, value));
}

if (!("getMetadata" in Reflect)) {
  Object.assign(Reflect, { getMetadata: metadata, getOwnMetadata: ownMetadata, defineMetadata });
}
