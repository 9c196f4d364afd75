/**
 * How the image starts Node.
 *
 * The agent makes much short-lived garbage: a small young generation saves 100 MiB. 4 MiB cost nothing at rest, where
 * the agent collects by itself, and with 1 MiB a storm of remediations takes twice as long (docs/evidence/memory.md).
 * Node fits the rest of the heap to the memory limit of the container. SIGUSR1 would open the debugger, and with it the
 * memory that holds passwords. With --permission nothing is written and no program is started, whatever a dependency
 * tries.
 */
export const NODE_FLAGS = [
  "--max-semi-space-size=4",
  "--disable-sigusr1",
  "--permission",
  "--allow-fs-read=*",
] as const;

/**
 * glibc keeps freed memory for each thread, and for later blocks of the size of a list's page: one pool for all threads
 * and a fixed limit return 17 MiB of it.
 */
export const MALLOC_ENVIRONMENT = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "131072" } as const;
