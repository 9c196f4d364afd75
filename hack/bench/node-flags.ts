/**
 * How Node runs the agent in its Deployment: the first is the image's own flag, the second what Node chooses by itself within the
 * memory limit of 256 MiB.
 */
export const AGENT_NODE_FLAGS = ["--max-semi-space-size=1", "--max-old-space-size=128"];
