import { DEFAULT_CIPHERS } from "node:tls";

/**
 * The ciphers for connections to servers: the list of Node without finite-field Diffie-Hellman, because the server
 * chooses its group. A group of 9,600 bits blocks the main thread for a second at each handshake.
 */
export const CLIENT_CIPHERS = `${DEFAULT_CIPHERS}:!kDHE`;
