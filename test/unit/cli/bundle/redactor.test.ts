import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readOnly } from "../../../../src/cli/bundle/read/read-only.ts";
import { Redactor } from "../../../../src/cli/bundle/redact/redactor.ts";
import { KnownSecrets } from "../../../../src/cli/bundle/redact/known-secrets.ts";
import type { KubeTransport } from "../../../../src/kube/transport.ts";
import { SECRET_FORMS } from "../../../lib/secret-forms/all.ts";
import { HARMLESS_TEXTS } from "../../../lib/secret-forms/harmless.ts";

// test/integration/cli-bundle.test.ts covers the secrets that must be removed. Here is what must stay, and how long
// redaction may take.

describe("what a support bundle removes", () => {
  it("a support bundle keeps what a diagnosis needs", () => {
    for (const text of [
      "AuthenticationFailed: https://bmc-1.example refuses user and password of Secret ironfence-system/bmc-1",
      "SecretNotFound: there is no Secret ironfence-system/worker-1-bmc",
      "POST https://10.0.0.3:8443/redfish/v1/Systems/437XR1138R2/Actions/ComputerSystem.Reset: 503",
      "system UUID bbe77376-d30e-4c76-936c-2d64d4374a8a, as pinned identity says",
      "sha256 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
      "image registry.example:5000/ironfence:0.1.0@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
      "node worker-1 is Unknown for 41 s; basic settings; the password was refused",
    ]) {
      assert.equal(new Redactor().text(text), text);
    }
    const target = {
      metadata: { annotations: { "ironfence.io/allow-provider-id": "true" }, labels: { zone: "rack-4" } },
      spec: { devices: [{ credentialsSecretRef: { name: "bmc-1" }, tls: { sha256Fingerprint: "AB:CD" } }] },
      bmc: { address: "redfish://10.0.0.3", credentialsName: "bmc-1" },
      automountServiceAccountToken: true,
    };
    assert.deepEqual(new Redactor().value(target), target);
  });

  it("a support bundle keeps no value of a Secret, wherever the object is, and keeps its names", () => {
    const secret = { kind: "Secret", metadata: { name: "bmc" }, data: { password: "aHVudGVyMg==" } };
    const text = JSON.stringify(new Redactor().value({ items: [secret] }));
    assert.ok(!text.includes("aHVudGVyMg=="));
    assert.match(text, /"name":"bmc".*"password":"\[redacted: data of a Secret\]"/);
  });

  it("a support bundle removes everywhere a value that it has found once under its name", () => {
    const redactor = new Redactor();
    redactor.value({ password: "hunter2!" });
    assert.equal(redactor.finish("login as hunter2! failed"), "login as [redacted: known secret] failed");
  });

  describe("a password in a form in which users and programs write it", () => {
    const hidden = (text: string): void => assert.doesNotMatch(text, /Str0ngPw|calvin/u);
    for (const text of [
      "curl -k -u root:calvin https://bmc/redfish/v1",
      "curl -sku root:calvin https://bmc/redfish/v1",
      "curl -k -uroot:calvin https://bmc/redfish/v1",
      "curl -k --user root:Str0ngPw https://bmc",
      "curl --proxy-user=root:calvin https://bmc",
      "ipmitool -I lanplus -H h -U root -Y -P Str0ngPw power off",
      "pw=Str0ngPw",
      "password => Str0ngPw",
      "Passwort: Str0ngPw",
      "password：Str0ngPw",
      "passwd\tStr0ngPw1",
      "password:\n  Str0ngPw",
      "password:\r\nStr0ngPw\r\nnext: line",
    ]) {
      it(`a password is removed from the text ${JSON.stringify(text)}`, () => hidden(new Redactor().text(text)));
    }
    for (const list of [
      ["--password", "Str0ngPw"],
      ["-bmc-password", "Str0ngPw"],
      ["ipmitool", "-I", "lanplus", "-U", "root", "-P", "Str0ngPw", "power", "off"],
      ["curl", "-k", "-u", "root:calvin", "https://bmc"],
      ["curl", "-sku", "root:calvin", "https://bmc"],
      ["curl", "--user", "root:calvin", "https://bmc"],
    ]) {
      it(`a password is removed from the list of arguments ${list.join(" ")}`, () => {
        hidden(JSON.stringify(new Redactor().value({ spec: { containers: [{ args: list, command: list }] } })));
      });
    }

    it("a password is removed everywhere after it was found once, also if it is encoded", () => {
      const redactor = new Redactor();
      const password = `Str0ngPw!/x "y"ö`;
      redactor.value({ password });
      for (const form of [
        encodeURIComponent(password),
        encodeURIComponent(password).toLowerCase().replace("str0ngpw", "Str0ngPw"),
        new URLSearchParams({ password }).toString(),
        JSON.stringify(password),
      ]) {
        hidden(redactor.finish(`path ${form} end`));
      }
      for (const encoding of ["base64", "base64url"] as const) {
        const form = Buffer.from(password).toString(encoding);
        assert.equal(redactor.finish(`path ${form} end`), "path [redacted: known secret] end");
      }
    });

    it("the removal of a password leaves the text around it", () => {
      for (const text of [
        "curl -k https://bmc/redfish/v1 -X PUT",
        "credentials:\n  name: bmc-1",
        "the Secret has no key password:\nadd it to the Secret",
      ]) {
        assert.equal(new Redactor().text(text), text);
      }
      const value = {
        args: ["run", "--namespace", "ironfence-system", "-v", "--user", "root", "--password-file", "/f"],
      };
      assert.deepEqual(new Redactor().value(value), value);
    });
  });

  it("a support bundle redacts texts that are made to be slow within a moment", () => {
    for (const part of [
      "://",
      "password=",
      '"',
      "\\",
      "a",
      "-----BEGIN PRIVATE KEY-----",
      "Bearer ",
      "a:",
      "$6$",
      "token: |\n ",
      "password:\n",
      "password:\n x",
      "curl -u ",
      "curl -sk ",
      "<password ",
      "<password>",
      '<a name="password" ',
      "password=a ",
      "password = 'a",
      "Digest a=b, ",
      'Digest a="b" ,',
      "[ipmitool -P",
      "ipmitool ",
      "snmpget -c ",
      "%3D",
      "%2525",
      "&amp;",
      "&lt;password&gt;",
      "| password | ",
      "pass for a is ",
      "community ",
      "set password for ",
      "a.password ",
      "user b pass ",
      "x-auth-token: ",
      '"x-auth-token", ',
      "[[",
      '{"a":',
      "\\u003d",
      "eyJaaaaaaaa.",
      "password: [",
      "- password: |\n",
      "data:\n aa: aaaa\n",
      "<key>password</key>",
      "PRIVATE KEY-----",
      "secret",
      "secret: ",
      "login a password ",
      "a:1:a:a:",
      "root:x | chpasswd",
      "identified by '",
      "x-aaaaaaaa",
      "credentials a:",
      "login as a/",
      "logged in with a:A",
      "/Sessions/a",
      "auth=('a', ",
      "auth=a(",
      "chpasswd: {",
      "chpasswd:\n  a",
      "Enter password for a",
      "Enter password for a:\n",
      "session token ",
      "keystore=",
      "/u3+7Q",
      "s.aaaaaaaaaaaaaaaaaaaaaaaa",
      "https://a:b c",
      "----- ",
      "- - - ",
      "&!",
      "\t",
    ]) {
      const startMs = process.cpuUsage().user / 1_000;
      new Redactor().text(part.repeat(20_000));
      new Redactor().lines([part.repeat(3_000), part.repeat(3_000)]);
      const tookMs = process.cpuUsage().user / 1_000 - startMs;
      assert.ok(tookMs < 3_000, `${part}: ${tookMs} ms`);
    }
  });
});

describe("a secret in each of its forms", () => {
  for (const [name, text, secrets] of SECRET_FORMS) {
    it(`a secret in the form “${name}” is removed from a message, from a log and from a value`, () => {
      for (const shown of [
        new Redactor().text(text),
        new Redactor().lines(text.split("\n")).join("\n"),
        JSON.stringify(new Redactor().value({ status: { message: text } })),
      ]) {
        for (const secret of secrets) assert.ok(!shown.includes(secret), shown);
      }
    });
  }

  it("a secret in each of its forms is removed, and ordinary text is not", () => {
    for (const text of HARMLESS_TEXTS) {
      assert.equal(new Redactor().text(text), text);
      assert.equal(new Redactor().lines(text.split("\n")).join("\n"), text);
    }
  });

  it("a secret with lines of its own takes no line after it", () => {
    for (const block of [
      ["password: |", "  Str0ngPw"],
      ["2026-11-22T10:00:00Z -----BEGIN RSA PRIVATE KEY-----", "2026-11-22T10:00:00Z MIIEvQIBADANBgkq"],
      ["<Password>", "  Str0ngPw", "</Password>"],
      ["stringData:", "  x: Str0ngPw"],
    ]) {
      const next = ["node worker-1 is Ready", "the host reads Off"];
      const shown = new Redactor().lines([...block, ...next]);
      assert.deepEqual(shown.slice(-2), next);
      assert.doesNotMatch(shown.join("\n"), /Str0ng|MIIEv/);
    }
  });
});

describe("the secrets that a support bundle knows", () => {
  it("the secrets that a support bundle knows may be thousands, and each is removed everywhere", () => {
    const redactor = new Redactor();
    const passwords = Array.from({ length: 5_000 }, (_, index) => `Winter-${index}!`);
    redactor.value(passwords.map((password) => ({ password })));
    assert.equal(redactor.missed, 0);
    for (const password of passwords) {
      assert.equal(redactor.finish(`login as ${password} failed`), "login as [redacted: known secret] failed");
    }
  });

  it("the secrets that a support bundle knows take bounded memory, and those for which there is no room are counted", () => {
    const redactor = new Redactor(new KnownSecrets(1_000));
    redactor.value(Array.from({ length: 100 }, (_, index) => ({ password: `Winter-${index}!` })));
    assert.ok(redactor.missed > 50 && redactor.missed < 100, `${redactor.missed}`);
    assert.match(redactor.finish("Winter-0!"), /redacted/);
  });

  it("the secrets that a support bundle knows take no longer than a moment if all begin alike", () => {
    const known = new KnownSecrets();
    for (let index = 0; index < 20_000; index += 1) known.add(`Winter-${index}!`);
    const startMs = process.cpuUsage().user / 1_000;
    known.replaceIn("Winter".repeat(20_000), () => "x");
    assert.ok(process.cpuUsage().user / 1_000 - startMs < 3_000);
  });

  it("the secrets that a support bundle knows are removed in their longest form", () => {
    const redactor = new Redactor();
    redactor.value([{ password: "abcdef1" }, { password: "abcdef1234!" }]);
    assert.equal(
      redactor.finish("x abcdef1234! y abcdef1 z"),
      "x [redacted: known secret] y [redacted: known secret] z",
    );
  });
});

describe("the wire of a support bundle", () => {
  it("the wire of a support bundle reads no Secret and writes nothing, whatever is asked of it", async () => {
    const sent: string[] = [];
    const wire: KubeTransport = {
      send: ({ path }) => Promise.resolve({ status: 200, headers: {}, body: (sent.push(path), "") }),
      stream: () => Promise.reject(new Error("not used")),
      close: () => Promise.resolve(),
    };
    const { signal } = new AbortController();
    const send = (method: "GET" | "POST" | "DELETE", path: string): Promise<unknown> =>
      readOnly(wire).send({ method, path, lane: "api", timeoutMs: 1_000 }, signal);
    await send("GET", "/api/v1/nodes?limit=500");
    await send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    for (const [method, path] of [
      ["GET", "/api/v1/secrets"],
      ["GET", "/api/v1/namespaces/a/secrets/b"],
      ["GET", "/api/v1/namespaces/a/%73ecrets/b"],
      ["POST", "/api/v1/namespaces/a/configmaps"],
      ["DELETE", "/api/v1/nodes/a"],
    ] as const) {
      await assert.rejects(send(method, path), /a support bundle writes nothing and reads no Secret/);
    }
    assert.equal(sent.length, 2);
  });
});
