import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { createCertificateAuthority } from "../../../hack/lib/pki.ts";
import { systemClock } from "../../../src/runtime/system.ts";

test("an issued certificate is signed by its CA and carries its names, use and fingerprint", async () => {
  const ca = await createCertificateAuthority(systemClock, "test");
  const issued = await ca.issue({
    commonName: "admin",
    organizations: ["system:masters", "ops"],
    ipAddresses: ["127.0.0.1"],
    dnsNames: ["localhost"],
    usage: "server",
  });
  const certificate = new X509Certificate(issued.certPem);
  assert.ok(certificate.verify(new X509Certificate(ca.certPem).publicKey));
  assert.equal(certificate.checkIP("127.0.0.1"), "127.0.0.1");
  assert.equal(certificate.checkHost("localhost"), "localhost");
  assert.equal(certificate.checkHost("elsewhere.example"), undefined);
  assert.deepEqual(certificate.subject.split("\n"), ["O=system:masters", "O=ops", "CN=admin"]);
  assert.equal(issued.sha256Fingerprint, certificate.fingerprint256.replaceAll(":", "").toLowerCase());
  assert.deepEqual(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
});

test("two authorities do not vouch for each other", async () => {
  const one = await createCertificateAuthority(systemClock, "same name");
  const other = await createCertificateAuthority(systemClock, "same name");
  const issued = new X509Certificate((await one.issue({ commonName: "a", usage: "client" })).certPem);
  assert.ok(!issued.verify(new X509Certificate(other.certPem).publicKey));
});

test("a certificate can be made that has expired already", async () => {
  const ca = await createCertificateAuthority(systemClock, "test");
  const { certPem } = await ca.issue({ commonName: "a", usage: "server", validDays: -2 });
  assert.ok(Date.parse(new X509Certificate(certPem).validTo) < systemClock.nowMs());
});
