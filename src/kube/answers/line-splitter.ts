import { KubeError } from "../errors.ts";

/** Cuts a stream of text into lines, and refuses one that grows without end. */
export class LineSplitter {
  readonly #lengthMax: number;
  /**
   * The line that has not ended, as it came: strings that are appended to each other piece by piece take several times
   * the memory.
   */
  #rest: string[] = [];
  #restLength = 0;

  /** @param lengthMax longest line, in UTF-16 units. */
  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /**
   * The lines that `chunk` completes, without their ends. What follows the last end is kept for the next chunk; at the
   * end of the stream it is half a line, and of no use.
   *
   * @throws KubeError BadResponse on a line that is too long.
   */
  push(chunk: string): string[] {
    const lines = chunk.split("\n");
    const last = lines.pop() ?? "";
    if (lines.length > 0) {
      this.#rest.push(lines[0] ?? "");
      lines[0] = this.#rest.join("");
      this.#rest = [];
      this.#restLength = 0;
    }
    this.#rest.push(last);
    this.#restLength += last.length;
    if (this.#restLength > this.#lengthMax || lines.some((line) => line.length > this.#lengthMax)) {
      throw new KubeError("BadResponse", `a line of the watch is longer than ${this.#lengthMax} characters`);
    }
    return lines.filter((line) => line.trim() !== "");
  }
}
