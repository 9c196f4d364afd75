/** The tables of outlets that ironfence knows, by vendor and generation. */
export const MIBS = ["APC-rPDU2", "APC-rPDU", "Raritan", "Eaton", "Vertiv", "ServerTech-3", "ServerTech-4"] as const;
export type Mib = (typeof MIBS)[number];
