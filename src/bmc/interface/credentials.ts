import type { Secret } from "../../runtime/secret.ts";

/** What a device is logged in to with. */
export interface BmcCredentials {
  username: string;
  password: Secret;
}

/** Whether a BMC would accept or refuse both alike. */
export function sameCredentials(a: BmcCredentials, b: BmcCredentials): boolean {
  return a.username === b.username && a.password.equals(b.password);
}
