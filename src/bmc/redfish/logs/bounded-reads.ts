import { parseStart } from "./parse-start.ts";
import { EMPTY, parseJsonObject } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { Service } from "../session/service.ts";
import type { ReadingBudget } from "../../gate/limits/reading-budget.ts";
import { BmcError } from "../../interface/errors.ts";

/** How many bytes of the budget one answer may use, so that the next log can be read as well. */
const ANSWER_BYTES_MAX = 28_672;

/** A resource, or its beginning. */
export interface ReadResource {
  status: number;
  /** Empty unless the status is 200. Credentials that were sent are replaced in it. */
  body: JsonObject;
  /** Whether only its beginning was read. */
  isCut: boolean;
  /** The time of the answer by the clock of the BMC. */
  date: string | undefined;
}

/** Reads resources next to the calls of a service, within a budget. */
export class BoundedReads {
  readonly #service: Service;
  readonly #budget: ReadingBudget;
  readonly #signal: AbortSignal;
  #date: string | undefined;

  constructor(service: Service, budget: ReadingBudget, signal: AbortSignal) {
    this.#service = service;
    this.#budget = budget;
    this.#signal = signal;
  }

  /** The time of the last answer by the clock of the BMC, from its header. */
  get date(): string | undefined {
    return this.#date;
  }

  get isSpent(): boolean {
    return this.#budget.isSpent;
  }

  note(why: string): void {
    this.#budget.note(why);
  }

  hide(text: string): string {
    return this.#service.sentSecrets.hide(text);
  }

  /**
   * @param reference The reference that the BMC gives.
   * @param most How many bytes of the answer are read at most.
   * @returns undefined if there is no answer.
   */
  async get(reference: string, most = ANSWER_BYTES_MAX): Promise<ReadResource | undefined> {
    const path = this.#pathOf(reference);
    if (path === undefined) return undefined;
    const what = `GET ${this.#service.origin}${path}`;
    return this.#budget.send(what, this.#signal, async (signal) => {
      const bytesMax = Math.min(most, this.#budget.leftBytes);
      const { status, text, isWhole, bytes, header } = await this.#service.readBesides(path, bytesMax, signal);
      this.#budget.spend(bytes);
      this.#date = header("date") ?? this.#date;
      const parse = isWhole ? parseJsonObject : parseStart;
      const body = status === 200 ? this.#service.sentSecrets.hideInBody(parse(text, what)) : EMPTY;
      return { status, body, isCut: !isWhole, date: header("date") };
    });
  }

  #pathOf(reference: string): string | undefined {
    try {
      return pathOnOrigin(this.#service.origin, reference, "a reference of the BMC");
    } catch (error) {
      if (!(error instanceof BmcError)) throw error;
      this.#budget.note(error.message);
      return undefined;
    }
  }
}
