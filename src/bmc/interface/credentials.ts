import type { Secret } from "../../runtime/secret.ts";

/** The credentials for a login at a device. */
export interface BmcCredentials {
  /** Empty, like the password, for a driver server with a client certificate and without a key. */
  username: string;
  password: Secret;
  /** For a driver server. */
  certificate?: ClientCertificate;
}

/** How a client authenticates itself to a TLS server. */
export interface ClientCertificate {
  /** The certificate in PEM, followed by those of intermediate authorities. */
  cert: string;
  /** The private key of the certificate in PEM. */
  key: Secret;
}

/** Whether both are the same credentials. */
export function sameCredentials(a: BmcCredentials, b: BmcCredentials): boolean {
  const { certificate: ofA } = a;
  const { certificate: ofB } = b;
  const isSameCertificate =
    ofA === undefined || ofB === undefined ? ofA === ofB : ofA.cert === ofB.cert && ofA.key.equals(ofB.key);
  return a.username === b.username && a.password.equals(b.password) && isSameCertificate;
}
