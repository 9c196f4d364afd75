import assert from "node:assert/strict";
import { test } from "node:test";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { forever, hasCode, openFake, startFakeBmc } from "./bmc-fixture.ts";

const authority = await createCertificateAuthority(systemClock, "test CA");
const stranger = await createCertificateAuthority(systemClock, "another CA");
const issue = (ipAddresses: string[], validDays?: number) =>
  authority.issue({
    commonName: "bmc",
    ipAddresses,
    usage: "server",
    ...(validDays === undefined ? {} : { validDays }),
  });
const good = await issue(["127.0.0.1"]);
const pair = ({ certPem, keyPem }: { certPem: string; keyPem: string }) => ({ cert: certPem, key: keyPem });

test("a certificate that no known CA has signed is refused before anything is sent", async () => {
  await using bmc = await startFakeBmc(pair(good));
  for (const tls of [{ insecureSkipVerify: false }, { ca: stranger.certPem, insecureSkipVerify: false }]) {
    await using device = openFake(bmc, { tls });
    await assert.rejects(device.readPower(forever()), hasCode("TlsUntrusted", /sha256Fingerprint/));
    // The fingerprint that a user compares with the console of the BMC and then pins.
    await assert.rejects(device.readPower(forever()), hasCode("TlsUntrusted", new RegExp(good.sha256Fingerprint)));
  }
  assert.deepEqual(bmc.requests, []);
});

test("a CA bundle vouches for its certificates, even if the bundle has other certificates and text", async () => {
  await using bmc = await startFakeBmc(pair(good));
  const ca = `# racks 1 to 4\n${stranger.certPem}\n\n# rack 5\n${authority.certPem}\n`;
  await using device = openFake(bmc, { tls: { ca, insecureSkipVerify: false } });
  assert.equal((await device.readPower(forever())).state, "On");
});

test("a CA bundle does not vouch for another host's certificate, nor for an expired one", async () => {
  for (const certificate of [await issue(["127.0.0.9"]), await issue(["127.0.0.1"], -1)]) {
    await using bmc = await startFakeBmc(pair(certificate));
    await using device = openFake(bmc, { tls: { ca: authority.certPem, insecureSkipVerify: false } });
    await assert.rejects(device.readPower(forever()), hasCode("TlsUntrusted"));
    assert.deepEqual(bmc.requests, []);
  }
});

test("the handshake shows how long a certificate is valid, also for one that is not trusted", async () => {
  for (const validDays of [10, -1]) {
    await using bmc = await startFakeBmc(pair(await issue(["127.0.0.1"], validDays)));
    await using device = openFake(bmc, { tls: { ca: authority.certPem, insecureSkipVerify: false } });
    assert.equal(device.certificateUntilMs, undefined);
    await device.readPower(forever()).catch(() => undefined);
    const days = ((device.certificateUntilMs ?? 0) - systemClock.nowMs()) / 86_400_000;
    assert.ok(Math.abs(days - validDays) < 0.1, `${days}`);
  }
});

test("a pin trusts that very certificate on every connection, signed by any CA and for any name", async () => {
  const other = await issue(["192.0.2.1"]);
  await using bmc = await startFakeBmc(pair(other));
  const colons = other.sha256Fingerprint.toUpperCase().replace(/(..)(?=.)/g, "$1:");
  for (const sha256Fingerprint of [other.sha256Fingerprint, colons]) {
    await using device = openFake(bmc, { tls: { sha256Fingerprint, insecureSkipVerify: false } });
    assert.equal((await device.readPower(forever())).state, "On");
    bmc.override = ({ path }) => {
      bmc.override = () => undefined;
      return path.includes("Systems") ? "reset" : undefined;
    };
    assert.equal((await device.readPower(forever())).state, "On", "on a second connection");
  }
});

test("a pin refuses every other certificate, even a trusted one, and even with insecureSkipVerify", async () => {
  await using bmc = await startFakeBmc(pair(good));
  const { sha256Fingerprint } = await issue(["127.0.0.1"]);
  for (const tls of [
    { sha256Fingerprint, insecureSkipVerify: false },
    { sha256Fingerprint, insecureSkipVerify: true },
    { sha256Fingerprint, ca: authority.certPem, insecureSkipVerify: false },
  ]) {
    await using device = openFake(bmc, { tls });
    await assert.rejects(device.readPower(forever()), hasCode("TlsUntrusted", new RegExp(good.sha256Fingerprint)));
  }
  assert.deepEqual(bmc.requests, []);
});

test("insecureSkipVerify trusts any certificate", async () => {
  await using bmc = await startFakeBmc(pair(await issue(["192.0.2.1"], -1)));
  await using device = openFake(bmc, { tls: { insecureSkipVerify: true } });
  assert.equal((await device.readPower(forever())).state, "On");
});

test("a BMC that one device trusts is trusted by no other, though they share what TLS needs", async () => {
  await using bmc = await startFakeBmc(pair(good));
  await using careless = openFake(bmc, { tls: { insecureSkipVerify: true } });
  const { sha256Fingerprint } = good;
  await using pinned = openFake(bmc, { tls: { sha256Fingerprint, insecureSkipVerify: false } });
  for (const device of [careless, pinned]) await device.readPower(forever());
  const before = bmc.requests.length;
  await using strict = openFake(bmc, { tls: { insecureSkipVerify: false } });
  await using mistaken = openFake(bmc, {
    tls: { sha256Fingerprint: sha256Fingerprint.replaceAll(/./g, "0"), insecureSkipVerify: false },
  });
  for (const device of [strict, mistaken]) await assert.rejects(device.readPower(forever()), hasCode("TlsUntrusted"));
  assert.equal(bmc.requests.length, before);
});

test("old TLS is spoken by explicit option only, and the error names the option", async () => {
  for (const version of ["TLSv1", "TLSv1.1"] as const) {
    const old = { minVersion: version, maxVersion: version, ciphers: "DEFAULT@SECLEVEL=0" };
    await using bmc = await startFakeBmc({ ...pair(good), ...old });
    for (const minVersion of [undefined, "1.2", "1.3"] as const) {
      const tls = { ca: authority.certPem, insecureSkipVerify: false, ...(minVersion && { minVersion }) };
      await using device = openFake(bmc, { tls });
      await assert.rejects(device.readPower(forever()), hasCode("TlsUntrusted", /tls\.minVersion/));
    }
    await using trusting = openFake(bmc, { tls: { insecureSkipVerify: true } });
    await assert.rejects(trusting.readPower(forever()), hasCode("TlsUntrusted", /tls\.minVersion/));
    const minVersion = version === "TLSv1" ? "1.0" : "1.1";
    await using device = openFake(bmc, { tls: { ca: authority.certPem, insecureSkipVerify: false, minVersion } });
    assert.equal((await device.readPower(forever())).state, "On");
    await using unknown = openFake(bmc, { tls: { insecureSkipVerify: false, minVersion } });
    await assert.rejects(
      unknown.readPower(forever()),
      hasCode("TlsUntrusted", /not trusted/),
      "it is verified all the same",
    );
  }
});

test("a BMC chooses no Diffie-Hellman group, which could cost a second a handshake, unless old TLS is admitted", async () => {
  const rsa = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server", keys: "rsa" });
  const finiteField = { ciphers: "DHE-RSA-AES128-GCM-SHA256", dhparam: "auto", maxVersion: "TLSv1.2" } as const;
  await using bmc = await startFakeBmc({ ...pair(rsa), ...finiteField });
  const tls = { ca: authority.certPem, insecureSkipVerify: false };
  await using device = openFake(bmc, { tls });
  await assert.rejects(device.readPower(forever()), hasCode("TlsUntrusted", /tls\.minVersion/));
  assert.deepEqual(bmc.requests, []);
  await using admitted = openFake(bmc, { tls: { ...tls, minVersion: "1.1" } });
  assert.equal((await admitted.readPower(forever())).state, "On");
});

test("a BMC that does not speak TLS is Unreachable and gets no password", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake({ url: bmc.url.replace("http:", "https:") }, { tls: { insecureSkipVerify: true } });
  await assert.rejects(device.readPower(forever()), hasCode("Unreachable"));
  assert.deepEqual(bmc.requests, []);
});

test("trust that cannot be read is refused when the device is opened, not weakened", () => {
  const open = (tls: { ca?: string; sha256Fingerprint?: string }) => () =>
    openFake({ url: "https://127.0.0.1:1" }, { tls: { ...tls, insecureSkipVerify: false } });
  assert.throws(open({ ca: "" }), hasCode("TlsUntrusted", /no PEM/));
  assert.throws(open({ ca: "no certificate" }), hasCode("TlsUntrusted"));
  assert.throws(
    open({ ca: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" }),
    hasCode("TlsUntrusted", /cannot be parsed/),
  );
  assert.throws(open({ sha256Fingerprint: "abcd" }), hasCode("TlsUntrusted", /SHA-256/));
});
