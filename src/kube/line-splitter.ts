import { KubeError } from "./errors.ts";

/** Cuts a stream of text into lines, and refuses one that grows without end. */
export class LineSplitter {
  readonly #lengthMax: number;
  #rest = "";

  /** @param lengthMax longest line, in UTF-16 units. */
  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /**
   * The lines that `chunk` completes, without their ends. What follows the last end is kept for the next chunk; at the end of
   * the stream it is half a line, and nobody's business.
   *
   * @throws KubeError BadResponse on a line that is too long.
   */
  push(chunk: string): string[] {
    const lines = chunk.split("\n");
    lines[0] = this.#rest + (lines[0] ?? "");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > this.#lengthMax || lines.some((line) => line.length > this.#lengthMax)) {
      throw new KubeError("BadResponse", `a line of the watch is longer than ${this.#lengthMax} characters`);
    }
    return lines.filter((line) => line.trim() !== "");
  }
}
