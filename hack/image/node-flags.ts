/**
 * How the image starts Node.
 *
 * The agent creates much short-lived garbage, so a small young generation saves 100 MiB. 4 MiB cost nothing at rest,
 * because the agent then collects garbage itself. With 1 MiB a storm of remediations takes twice as long
 * (docs/evidence/memory.md). While V8 marks in steps, the heap grows on, by half in a storm. Without that, and with a
 * collection whenever the heap has grown by 15 %, the peak is lower, and a collection stops the main thread for up to
 * 0.1 s at 5,000 nodes. Node adapts the rest of the heap to the memory limit of the container. SIGUSR1 would open the
 * debugger, which gives access to memory with passwords. --permission prevents all dependencies from writing files and
 * starting programs.
 */
export const NODE_FLAGS = [
  "--max-semi-space-size=4",
  "--no-incremental-marking",
  "--heap-growing-percent=15",
  "--disable-sigusr1",
  "--permission",
  "--allow-fs-read=*",
] as const;

/**
 * glibc keeps freed memory for each thread, and for later blocks as large as a page of a list. One pool for all threads
 * and a fixed limit return 17 MiB of it.
 */
export const MALLOC_ENVIRONMENT = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "131072" } as const;
