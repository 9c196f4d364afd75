/**
 * How Node runs the agent in its Deployment: the first are the image's own flags, the last is what Node chooses by itself within the
 * memory limit of 256 MiB.
 */
export const AGENT_NODE_FLAGS = [
  "--max-semi-space-size=1",
  "--disable-sigusr1",
  "--permission",
  "--allow-fs-read=*",
  "--max-old-space-size=128",
];
