import { KubeError } from "../errors.ts";

/** Splits a stream of text into lines, and refuses a line that is too long. */
export class LineSplitter {
  readonly #lengthMax: number;
  /**
   * The chunks of the line that has not ended. A string that is appended to piece by piece takes several times the
   * memory.
   */
  #rest: string[] = [];
  #restLength = 0;

  /** @param lengthMax the longest line that is accepted, in UTF-16 units. */
  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /**
   * Returns the lines that `chunk` completes, without line breaks. Text after the last line break is kept for the next
   * chunk. At the end of the stream it is an incomplete line, which is not returned.
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
