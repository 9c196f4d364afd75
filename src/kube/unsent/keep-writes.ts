import type { KubeRuntime } from "../runtime.ts";
import type { ReadAs } from "./unsent-client.ts";
import { UnsentClient } from "./unsent-client.ts";
import { UnsentObjects } from "./unsent-objects.ts";
import { UnsentView } from "./unsent-view.ts";

/**
 * A runtime for work that must not change the cluster. The API server answers reads. Writes are kept in memory, and
 * later reads and watches show them, so that code that reads what it has written works as usual. Kubernetes Events are
 * still sent.
 *
 * @param readAs changes or hides the objects that the API server returns.
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
