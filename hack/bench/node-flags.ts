/**
 * How Node runs the agent in its Deployment: the first are the image's own flags. The last keeps figures comparable
 * with earlier ones: within the memory limit of 384 MiB Node chooses a larger heap by itself, half of the limit.
 */
export const AGENT_NODE_FLAGS = [
  "--max-semi-space-size=1",
  "--disable-sigusr1",
  "--permission",
  "--allow-fs-read=*",
  "--max-old-space-size=128",
];

/** The environment of the image: glibc returns memory that it otherwise keeps. */
export const AGENT_ENVIRONMENT = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "131072" };
