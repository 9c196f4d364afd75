import { createCertificateAuthority } from "../lib/pki.ts";
import type { CertificateAndKey } from "../lib/pki.ts";
import type { SpoiltCertificate } from "./faults.ts";
import type { Clock } from "../../src/runtime/clock.ts";

/** The certificates of a mock. */
export interface MockCertificates {
  /** The CA for clients of the mock. */
  caPem: string;
  good: CertificateAndKey;
  /** Certificates for faults. */
  spoilt: Readonly<Record<SpoiltCertificate, CertificateAndKey>>;
}

/** Creates certificates for mocks on 127.0.0.1. */
export async function makeCertificates(clock: Pick<Clock, "nowMs">): Promise<MockCertificates> {
  const ca = await createCertificateAuthority(clock, "redfish-mock CA");
  const other = await createCertificateAuthority(clock, "another CA");
  const here = {
    commonName: "redfish-mock",
    ipAddresses: ["127.0.0.1"],
    dnsNames: ["localhost"],
    usage: "server",
  } as const;
  return {
    caPem: ca.certPem,
    good: await ca.issue(here),
    spoilt: {
      expired: await ca.issue({ ...here, validDays: -1 }),
      otherName: await ca.issue({ commonName: "other", dnsNames: ["other.example"], usage: "server" }),
      otherAuthority: await other.issue(here),
    },
  };
}
