import { DEFAULT_CIPHERS } from "node:tls";

/**
 * What is offered to servers: Node's own list without finite-field Diffie-Hellman, whose group the server chooses. One of 9,600 bits
 * takes a second of the main thread at each handshake.
 */
export const CLIENT_CIPHERS = `${DEFAULT_CIPHERS}:!kDHE`;
