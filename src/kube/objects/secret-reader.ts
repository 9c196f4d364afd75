import type { KubeClient, ObjectKey } from "../client.ts";
import { isKubeError, KubeError } from "../errors.ts";
import type { KubeObject, ResourceType } from "../resource.ts";
import { Secret } from "../../runtime/secret.ts";

const SECRETS: ResourceType = { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };

/** `corev1.Secret` as the API server sends it; values are base64. */
export interface SecretObject extends KubeObject {
  data?: Record<string, string>;
}

/** A Secret that was read live. Its values are decoded on request, and cannot be printed. */
export class StoredSecret {
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** Changes with every change of the Secret, and with its replacement by another one of the same name. */
  readonly version: string;
  readonly #data: ReadonlyMap<string, string>;

  /** @throws KubeError BadResponse if a value is not a string. */
  constructor({ metadata, data = {} }: SecretObject) {
    const values = Object.entries(data);
    if (!values.every(([, value]) => typeof value === "string")) {
      throw new KubeError("BadResponse", `Secret ${metadata.name}: its data has a value that is not a string`);
    }
    this.annotations = metadata.annotations ?? {};
    this.labels = metadata.labels ?? {};
    this.version = `${metadata.uid} ${metadata.resourceVersion}`;
    this.#data = new Map(values);
  }

  /** Whether the key exists, even with an empty value. */
  has(key: string): boolean {
    return this.#data.has(key);
  }

  /** The value of a key; undefined if the key does not exist or its value is empty. */
  value(key: string): Secret | undefined {
    const text = Buffer.from(this.#data.get(key) ?? "", "base64").toString("utf8");
    // A value that was written with `echo` ends in a newline, which is never part of a user name, password or key.
    const value = text.replace(/\r?\n$/, "");
    return value === "" ? undefined : new Secret(value);
  }
}

/**
 * Reads a Secret live, within the deadline that every call of the client has.
 *
 * @returns undefined if there is no such Secret.
 * @throws KubeError, Forbidden without the permission to get the Secret.
 */
export async function readSecret(
  client: Pick<KubeClient, "get">,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<StoredSecret | undefined> {
  try {
    return new StoredSecret(await client.get<SecretObject>(SECRETS, key, signal));
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}
