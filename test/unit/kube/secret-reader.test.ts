import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { isKubeError, KubeError } from "../../../src/kube/errors.ts";
import type { KubeErrorCode } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { readSecret } from "../../../src/kube/objects/secret-reader.ts";
import type { StoredSecret } from "../../../src/kube/objects/secret-reader.ts";

const SRC = fileURLToPath(new URL("../../../src", import.meta.url));
const base64 = (text: string): string => Buffer.from(text).toString("base64");

function read(answer: Record<string, unknown> | KubeErrorCode): Promise<StoredSecret | undefined> {
  const metadata = { namespace: "ns", name: "bmc", uid: "1", resourceVersion: "7" };
  const client = {
    get: async <T extends KubeObject>(): Promise<T> => {
      if (typeof answer === "string") throw new KubeError(answer, "failed");
      const object: unknown = { apiVersion: "v1", kind: "Secret", metadata, data: answer };
      return object as T;
    },
  };
  return readSecret(client, { namespace: "ns", name: "bmc" }, new AbortController().signal);
}

test("a value of a Secret is decoded without the newline that echo adds, and cannot be printed", async () => {
  const secret = await read({ password: base64("hunter2\n"), username: base64("fence") });
  assert.ok(secret !== undefined);
  assert.equal(secret.value("password")?.reveal(), "hunter2");
  assert.equal(secret.value("username")?.reveal(), "fence");
  for (const text of [inspect(secret, { depth: 9, showHidden: true }), JSON.stringify(secret)]) {
    assert.doesNotMatch(text, /hunter2|aHVudGVy/);
  }
});

test("a key that does not exist and one with an empty value both have no value", async () => {
  const secret = await read({ empty: "", newline: base64("\n") });
  assert.ok(secret !== undefined);
  for (const key of ["empty", "newline", "missing", "toString"]) assert.equal(secret.value(key), undefined);
  assert.deepEqual([secret.has("empty"), secret.has("missing"), secret.has("toString")], [true, false, false]);
});

test("a Secret that does not exist is not an error; one that cannot be read is", async () => {
  assert.equal(await read("NotFound"), undefined);
  await assert.rejects(read("Forbidden"), (error) => isKubeError(error, "Forbidden"));
  await assert.rejects(read("Timeout"), (error) => isKubeError(error, "Timeout"));
});

test("an answer with values that are not strings is refused", async () => {
  await assert.rejects(read({ password: { nested: "x" } }), (error) => isKubeError(error, "BadResponse"));
});

test("one module alone reads the values of Secrets", () => {
  const others = globSync("**/*.ts", { cwd: SRC })
    .filter((file) => file !== "kube/objects/secret-reader.ts")
    .filter((file) =>
      /\bSecretObject\b|client\s*\.get(?:<[^>]*>)?\(\s*SECRETS\b/.test(readFileSync(join(SRC, file), "utf8")),
    );
  assert.deepEqual(others, []);
});
