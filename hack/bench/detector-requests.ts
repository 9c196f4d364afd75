import type { ApiServer, RequestRecord } from "../kube-mock/api-server.ts";

/** A collection's path ends with its plural: `/api/v1/nodes`, `/apis/GROUP/VERSION[/namespaces/NAMESPACE]/PLURAL`. */
const PATH = /^\/api(?:s\/[^/]+)?\/[^/]+(?:\/namespaces\/[^/]+(?=\/))?\/([^/?]+)(\/[^/?]+)?(\/[^/?]+)?(?:\?|$)/;

/** Counts the requests that an API server has answered, as `verb resource`. Requests for agent leases are left out. */
export class RequestTally {
  readonly #counts = new Map<string, number>();

  /** @param client counts only the requests of this client; by default those of all clients. */
  constructor(server: ApiServer, client?: string) {
    server.onRequest((record) => {
      if (client === undefined || record.client === client) this.#take(record);
    });
  }

  /** The number of requests of each kind, without watches and Events. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].filter(([what]) => !/ events|^watch /.test(what)));
  }

  reset(): void {
    this.#counts.clear();
  }

  /** Requests of one verb, of any resource. */
  count(verb: string): number {
    return this.#sum((what) => what.startsWith(`${verb} `));
  }

  /** Requests per object if there are `count` objects, without watches and Events. */
  each(count: number): number {
    return this.#sum((what) => !/ events|^watch /.test(what)) / count;
  }

  /** Requests per node, without status, Events and watches. */
  perNode(nodes: number): string {
    return (this.#sum((what) => !/ (events|nodehealthchecks)|^watch /.test(what)) / nodes).toFixed(2);
  }

  toString(): string {
    const parts = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([what, count]) => `${count} ${what}`);
    return parts.length === 0 ? "none" : parts.join(", ");
  }

  #sum(of: (what: string) => boolean): number {
    return [...this.#counts].reduce((sum, [what, count]) => (of(what) ? sum + count : sum), 0);
  }

  #take({ method, path, watch }: RequestRecord): void {
    const [, resource = "discovery", name, subresource = ""] = PATH.exec(path) ?? [];
    if (resource === "leases" && name?.startsWith("/ironfence") === true) return;
    const what = `${verbOf(method, name !== undefined, watch)} ${resource}${subresource}`;
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }
}

function verbOf(method: string, named: boolean, watch: boolean): string {
  if (watch) return "watch";
  if (method === "GET") return named ? "get" : "list";
  return method === "POST" ? "create" : method.toLowerCase();
}
