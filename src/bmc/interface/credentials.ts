import type { Secret } from "../../runtime/secret.ts";

/** What a device is logged in to with. */
export interface BmcCredentials {
  /** Empty, like the password, for a driver server that asks for a client certificate alone. */
  username: string;
  password: Secret;
  /** For a driver server. */
  certificate?: ClientCertificate;
}

/** What a TLS server knows its client by. */
export interface ClientCertificate {
  /** The certificate in PEM, followed by those of intermediate authorities. */
  cert: string;
  /** The private key of the certificate in PEM. */
  key: Secret;
}

/** Whether a BMC would accept or refuse both alike. */
export function sameCredentials(a: BmcCredentials, b: BmcCredentials): boolean {
  const { certificate: ofA } = a;
  const { certificate: ofB } = b;
  const isSameCertificate =
    ofA === undefined || ofB === undefined ? ofA === ofB : ofA.cert === ofB.cert && ofA.key.equals(ofB.key);
  return a.username === b.username && a.password.equals(b.password) && isSameCertificate;
}
