import { generateKeyPairSync, sign } from "node:crypto";
import type { ClientCertificate } from "../../interface/credentials.ts";
import { Secret } from "../../../runtime/secret.ts";

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;
/** 1.2.840.10045.4.3.2 (RFC 5758 section 3.2). */
const ECDSA_WITH_SHA256 = Buffer.from("300a06082a8648ce3d040302", "hex");
/** 2.5.4.3. */
const COMMON_NAME = Buffer.from("0603550403", "hex");

/** Creates a self-signed client certificate (RFC 5280 section 4.1), which a server must refuse. */
export function createUnknownCertificate(): ClientCertificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, Buffer.from("ironfence")))));
  const validity = der(SEQUENCE, ...["200101000000Z", "491231235959Z"].map((at) => der(UTC_TIME, Buffer.from(at))));
  const subjectKey = publicKey.export({ type: "spki", format: "der" });
  const serial = der(INTEGER, Buffer.from([1]));
  const content = der(SEQUENCE, serial, ECDSA_WITH_SHA256, name, validity, name, subjectKey);
  const signature = Buffer.concat([Buffer.from([0]), sign("sha256", content, privateKey)]);
  const certificate = der(SEQUENCE, content, ECDSA_WITH_SHA256, der(BIT_STRING, signature));
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    cert: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
    key: new Secret(privateKey.export({ type: "pkcs8", format: "pem" }).toString()),
  };
}

/** A value of less than 64 KiB in DER. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const bytes = length < 0x80 ? [length] : length < 0x1_00 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), content]);
}
