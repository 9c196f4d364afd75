import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { before, describe, it } from "node:test";
import type { CertificateAndKey } from "../../../hack/lib/pki.ts";
import { createCertificateAuthority } from "../../../hack/lib/pki.ts";
import { KubeconfigError, parseWorkloadKubeconfig } from "../../../src/clusters/kubeconfig-secret.ts";
import { systemClock } from "../../../src/runtime/system.ts";
import { base64, kubeconfigText } from "./kubeconfig-text.ts";

const SECRET_TEXT = "h1dden-value";

/** The message with which a text is refused. */
function refusal(text: string): string {
  try {
    parseWorkloadKubeconfig(text);
  } catch (error) {
    assert.ok(error instanceof KubeconfigError, String(error));
    assert.equal(error.cause, undefined, "a cause may quote the text");
    return error.message;
  }
  return assert.fail("it was taken");
}

describe("the kubeconfig of a workload cluster", () => {
  let ca: string;
  let client: CertificateAndKey;
  let other: CertificateAndKey;

  before(async () => {
    const authority = await createCertificateAuthority(systemClock, "workload");
    ca = authority.certPem;
    client = await authority.issue({ commonName: "admin", usage: "client" });
    other = await authority.issue({ commonName: "other", usage: "client" });
  });

  it("the kubeconfig of a workload cluster gives server, certificates and client key", () => {
    const text = kubeconfigText({
      cluster: { "certificate-authority-data": base64(ca), "tls-server-name": "api.workload" },
      user: {
        token: undefined,
        "client-certificate-data": base64(client.certPem),
        "client-key-data": base64(client.keyPem),
      },
    });
    assert.deepEqual(parseWorkloadKubeconfig(text), {
      server: "https://10.0.0.7:6443",
      credentials: {
        headers: {},
        tls: { ca, cert: client.certPem, key: client.keyPem, serverName: "api.workload", insecureSkipVerify: false },
      },
    });
  });

  it("the kubeconfig of a workload cluster gives a token, or a user name and password", () => {
    assert.deepEqual(parseWorkloadKubeconfig(kubeconfigText()).credentials.headers, { authorization: "Bearer t0ken" });
    const basic = kubeconfigText({ user: { token: undefined, username: "u", password: "p" } });
    assert.deepEqual(parseWorkloadKubeconfig(basic).credentials.headers, { authorization: `Basic ${base64("u:p")}` });
  });

  it("the kubeconfig of a workload cluster checks the server's certificate unless it says otherwise itself", () => {
    assert.equal(parseWorkloadKubeconfig(kubeconfigText()).credentials.tls.insecureSkipVerify, false);
    const insecure = kubeconfigText({ cluster: { "insecure-skip-tls-verify": true } });
    assert.equal(parseWorkloadKubeconfig(insecure).credentials.tls.insecureSkipVerify, true);
    const text = kubeconfigText({ cluster: { "insecure-skip-tls-verify": "yes" } });
    assert.equal(parseWorkloadKubeconfig(text).credentials.tls.insecureSkipVerify, false);
  });

  const refused: [string, string, unknown][] = [
    ["cluster", "certificate-authority", "/etc/passwd"],
    ["cluster", "proxy-url", "http://proxy:3128"],
    ["user", "exec", { command: "/bin/sh", args: ["-c", "true"], apiVersion: "client.authentication.k8s.io/v1" }],
    ["user", "auth-provider", { name: "oidc", config: { "id-token": SECRET_TEXT } }],
    ["user", "tokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"],
    ["user", "client-certificate", "/etc/ssl/cert.pem"],
    ["user", "client-key", "/etc/ssl/key.pem"],
    ["user", "as", "system:admin"],
    ["user", "as-uid", "7"],
    ["user", "as-groups", ["system:masters"]],
    ["user", "as-user-extra", { scope: ["all"] }],
  ];
  for (const [part, field, value] of refused) {
    it(`the kubeconfig of a workload cluster is refused for ${part}.${field}, even with credentials that would be valid`, () => {
      assert.match(refusal(kubeconfigText({ [part]: { [field]: value } })), new RegExp(`^${part}\\.${field} `));
    });
  }

  const wrongServers = [
    "http://10.0.0.7:6443",
    "http://127.0.0.1:8080",
    "file:///etc/passwd",
    "10.0.0.7:6443",
    "",
    `https://admin:${SECRET_TEXT}@10.0.0.7:6443`,
    `https://10.0.0.7:6443/?token=${SECRET_TEXT}`,
  ];
  for (const server of wrongServers) {
    it(`the kubeconfig of a workload cluster is refused for the server ${JSON.stringify(server)}`, () => {
      const message = refusal(kubeconfigText({ cluster: { server } }));
      assert.match(message, /^cluster\.server /);
      assert.doesNotMatch(message, new RegExp(SECRET_TEXT));
    });
  }

  it("the kubeconfig of a workload cluster is refused if certificates or keys cannot be used, without quoting them", () => {
    const wrong = [
      kubeconfigText({ cluster: { "certificate-authority-data": base64(SECRET_TEXT) } }),
      kubeconfigText({
        cluster: { "certificate-authority-data": base64(`-----BEGIN CERTIFICATE-----\n${SECRET_TEXT}`) },
      }),
      kubeconfigText({ user: { "client-key-data": base64(client.keyPem) } }),
      kubeconfigText({
        user: { "client-certificate-data": base64(client.certPem), "client-key-data": base64(other.keyPem) },
      }),
      kubeconfigText({
        user: {
          "client-certificate-data": base64(client.certPem),
          "client-key-data": base64(`-----BEGIN PRIVATE KEY-----\n${SECRET_TEXT}\n-----END PRIVATE KEY-----`),
        },
      }),
      kubeconfigText({ user: { token: `${SECRET_TEXT}\r\nx-injected: yes` } }),
      kubeconfigText({ user: { token: 7 } }),
    ];
    for (const text of wrong) {
      assert.match(refusal(text), /(certificate-authority-data|client-certificate-data|token)/);
      assert.doesNotMatch(refusal(text), new RegExp(SECRET_TEXT));
    }
  });

  it("the kubeconfig of a workload cluster is refused if its key would keep the agent busy at each handshake", () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 4_104 });
    const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const user = { "client-certificate-data": base64(client.certPem), "client-key-data": base64(key) };
    assert.match(refusal(kubeconfigText({ user })), /^user\.client-key-data has more than 4096 bits$/);
  });

  it("the kubeconfig of a workload cluster is refused if its parts are not there, or are not what they should be", () => {
    const wrong: [string, RegExp][] = [
      [`{ "token": "${SECRET_TEXT}"`, /^is not valid JSON$/],
      [SECRET_TEXT, /^is not a kubeconfig$/],
      [kubeconfigText({ root: { "current-context": "" } }), /^current-context is missing$/],
      [kubeconfigText({ root: { contexts: [] } }), /^contexts has no entry/],
      [kubeconfigText({ root: { clusters: "none" } }), /^clusters has no entry/],
      [kubeconfigText({ root: { users: [{ name: "u", user: null }] } }), /^users has no entry/],
      ["x".repeat(300_000), /^is longer than/],
    ];
    for (const [text, message] of wrong) assert.match(refusal(text), message);
  });

  it("the kubeconfig of a workload cluster reads no more of a kubeconfig than its current context", () => {
    const text = kubeconfigText({
      root: {
        users: [
          { name: "plugin", user: { exec: { command: "/bin/false" } } },
          { name: "u", user: { token: "t0ken" } },
        ],
      },
    });
    assert.equal(parseWorkloadKubeconfig(text).server, "https://10.0.0.7:6443");
  });
});
