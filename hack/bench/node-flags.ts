import { NODE_FLAGS } from "../image/node-flags.ts";

export { MALLOC_ENVIRONMENT as AGENT_ENVIRONMENT } from "../image/node-flags.ts";

/**
 * The flags of Node in the Deployment, and one more that keeps figures comparable with earlier ones: with the memory
 * limit of 384 MiB, Node by itself chooses a larger heap, half of the limit.
 */
export const AGENT_NODE_FLAGS = [...NODE_FLAGS, "--max-old-space-size=128"];
