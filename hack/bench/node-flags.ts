import { NODE_FLAGS } from "../image/node-flags.ts";

export { MALLOC_ENVIRONMENT as AGENT_ENVIRONMENT } from "../image/node-flags.ts";

/**
 * How Node runs the agent in its Deployment. The last flag keeps figures comparable with earlier ones: within the
 * memory limit of 384 MiB Node chooses a larger heap by itself, half of the limit.
 */
export const AGENT_NODE_FLAGS = [...NODE_FLAGS, "--max-old-space-size=128"];
