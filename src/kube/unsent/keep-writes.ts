import type { KubeRuntime } from "../runtime.ts";
import type { ReadAs } from "./unsent-client.ts";
import { UnsentClient } from "./unsent-client.ts";
import { UnsentObjects } from "./unsent-objects.ts";
import { UnsentView } from "./unsent-view.ts";

/**
 * The same cluster, for work that must not change it: reads are answered by the API server, and writes are kept in
 * memory, where later reads and watches find them. So code that reads what it has written works as ever. Kubernetes
 * Events are recorded as before.
 *
 * @param readAs how objects of the API server are read.
 */
export function keepWrites(runtime: KubeRuntime, readAs: ReadAs): KubeRuntime {
  const { client, clock, random } = runtime;
  const objects = new UnsentObjects(runtime.logger);
  return {
    ...runtime,
    client: new UnsentClient({ client, clock, random, objects, readAs }),
    watch: (options, signal) => {
      const trim: typeof options.trim = (raw) => {
        const found = readAs(raw);
        if (found === undefined) return undefined;
        objects.serverHas(options.type, found);
        return options.trim(found);
      };
      return new UnsentView(runtime.watch({ ...options, trim }, signal), objects, options, signal);
    },
  };
}
