import { BmcError } from "../interface/errors.ts";

/**
 * An order that was stopped, because something began to hold it. It says nothing against the devices. No device got a
 * power-off, and some may have got a power-on.
 */
export class HeldError extends Error {
  override readonly name = "HeldError";
}

/** The order failed on its level, but some device accepted it. That device may be off, whatever the others show. */
export class PartlyTakenError extends BmcError {
  constructor(failure: BmcError) {
    super(failure.code, `only some devices took the order: ${failure.message}`, { cause: failure });
  }
}
