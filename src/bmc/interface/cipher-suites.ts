/**
 * The suites that can be used, by their numbers in IPMI 2.0, table 22-20. Suite 0, which needs no password, is not
 * supported, and neither are those with MD5 or RC4.
 */
export const CIPHER_SUITE_IDS = [1, 2, 3, 15, 16, 17] as const;
export type CipherSuiteId = (typeof CIPHER_SUITE_IDS)[number];

/**
 * Tried in this order unless an option says otherwise. 2 and 16 do not encrypt. 1 and 15 do not authenticate messages
 * after the login either: an attacker who can send with the address of the BMC can then report "off".
 */
export const DEFAULT_CIPHER_SUITES: readonly CipherSuiteId[] = [17, 3];
