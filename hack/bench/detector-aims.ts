import { row } from "./report.ts";

/** Prints the aims of the detector, and the measured figures of the operator that it replaces. */
export function printAims(): void {
  console.log("\nAims:");
  row(
    "duration over → CR created, 5,000 nodes",
    "p99 ≤ 50 ms, at most three reads and one create before the CR exists",
  );
  row("250 of 5,000 nodes at once → last CR created", "≤ 3 s, ≤ 4 requests a node in addition to status and events");
  row("memory, 5,000 nodes", "≤ 130 MiB (with 5,000 targets)");
  row("at rest, 5,000 nodes", "≤ 2 % of a core, ≤ 1 request a second in addition to watches and the lease, no LIST");
  console.log(
    "\nThe operator of today: node-healthcheck-operator, main of 2026-07, one health check with two templates, on a real control\nplane 1.36.3 with kwok nodes and leases of 40 s, two cores (measured once, not by this bench):",
  );
  row("1,000 nodes, at rest: RSS; CPU in 60 s", "89 MB; 1.7 s");
  row("5,000 nodes, at rest: RSS; CPU in 60 s", "158 MB; 3.8 s");
  row("1,000 / 5,000 nodes: peak RSS", "109 MB / 327 MB");
  row("1,000 nodes: one evaluation", "5 to 18 s, about 2,000 LISTs");
  row("5,000 nodes: one evaluation", "622 and 649 s, about 10,000 LISTs");
  row("1,000 nodes, one dies: Unknown → CR", "24.2 and 22.9 s, 4,016 requests");
  row("1,000 nodes, 5 % at once: last CR after last Unknown", "18.8 s, 5,951 requests");
  row("5,000 nodes, 5 % at once: last CR after last Unknown", "984 s, 21,575 requests, 263 s CPU");
}
