// Types for the part of net-snmp that is used, because the package has none.
declare module "net-snmp" {
  export interface NetSnmpVarbind {
    oid: string;
    type: number;
    value: unknown;
  }

  type Callback = (error: Error | null, varbinds?: NetSnmpVarbind[]) => void;

  export interface NetSnmpSession {
    get(oids: string[], callback: Callback): void;
    set(varbinds: { oid: string; type: number; value: number }[], callback: Callback): void;
    /** Ends every request that waits, and its timer. */
    cancelRequests(error: Error): void;
    close(): void;
    on(event: "error", listener: (error: Error) => void): void;
  }

  export interface NetSnmpOptions {
    version: number;
    port: number;
    retries: number;
    timeout: number;
    idBitsSize: 32;
    reportOidMismatchErrors: true;
    strictIntRangeChecks: true;
    dgramModule: { createSocket(): unknown };
  }

  export interface NetSnmpUser {
    name: string;
    level: number;
    authProtocol: number;
    authKey: string;
    privProtocol?: number;
    privKey?: string;
  }

  export interface NetSnmp {
    createSession(target: string, community: string, options: NetSnmpOptions): NetSnmpSession;
    createV3Session(target: string, user: NetSnmpUser, options: NetSnmpOptions): NetSnmpSession;
    Version2c: number;
    Version3: number;
    ObjectType: Record<string, number>;
    SecurityLevel: { authNoPriv: number; authPriv: number };
    AuthProtocols: Record<string, number | string>;
    PrivProtocols: Record<string, number | string>;
    RequestFailedError: new () => Error & { status: number };
    Authentication: { authToKeyCache: Record<string, unknown> };
  }

  // CommonJS: the whole module is its default export.
  const netSnmp: NetSnmp;
  export default netSnmp;
}
