import { readFile } from "node:fs/promises";

/** CPU and memory that a process has used so far (Linux, procfs). */
export interface ProcessUsage {
  /** Resident memory now, bytes. */
  rssBytes: number;
  /** Peak of resident memory so far, bytes. */
  rssPeakBytes: number;
  /** CPU time so far, user and system, milliseconds. */
  cpuMs: number;
}

// USER_HZ is 100 on every Linux that Node runs on (man 5 proc).
const TICK_MS = 10;

/** Reads /proc of a live process. */
export async function readUsage(pid: number): Promise<ProcessUsage> {
  const [status, stat] = await Promise.all([
    readFile(`/proc/${pid}/status`, "utf8"),
    readFile(`/proc/${pid}/stat`, "utf8"),
  ]);
  const kib = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? Number.NaN);
  // The command in parentheses may hold spaces; utime and stime are the 12th and 13th fields behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return {
    rssBytes: kib("VmRSS") * 1_024,
    rssPeakBytes: kib("VmHWM") * 1_024,
    cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
  };
}
