import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import type { Clock } from "../runtime/clock.ts";

/** How often the files are read again. Certificates are renewed days before they expire. */
const AGE_MAX_MS = 60_000;

interface Pair {
  cert: string;
  key: string;
}

/**
 * The certificate of a server: `tls.crt` and `tls.key` in a folder, usually a mounted Secret that is renewed while the
 * agent runs.
 */
export class CertificateFiles {
  readonly #folder: string;
  readonly #clock: Clock;
  #held: Pair;
  #readMs: number;

  /** @throws Error naming the folder if a file is missing or the two do not belong together. */
  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
    this.#held = read(folder);
    this.#readMs = clock.monotonicMs();
  }

  current(): Pair {
    return this.#held;
  }

  /** A newer certificate; undefined if there is none that can be used. The old one then stays in use. */
  renewed(): Pair | undefined {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#readMs < AGE_MAX_MS) return undefined;
    this.#readMs = nowMs;
    try {
      const pair = read(this.#folder);
      if (pair.cert === this.#held.cert && pair.key === this.#held.key) return undefined;
      this.#held = pair;
      return pair;
    } catch {
      // The files may be in the middle of a replacement. The next call after AGE_MAX_MS reads them again.
      return undefined;
    }
  }
}

function read(folder: string): Pair {
  try {
    const pair = {
      cert: readFileSync(join(folder, "tls.crt"), "utf8"),
      key: readFileSync(join(folder, "tls.key"), "utf8"),
    };
    createSecureContext(pair);
    return pair;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot use tls.crt and tls.key in ${folder}: ${why}`, { cause: error });
  }
}
