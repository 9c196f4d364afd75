import { BmcError } from "../errors.ts";

const REFERENCE_LENGTH_MAX = 2_048;

/**
 * The path that a BMC's reference (`@odata.id`, an action's `target`, a `Location`) means on its own origin. A reference to
 * any other host is refused: following it would hand the session token to whoever it names.
 *
 * @param what names the reference in the error.
 * @throws BmcError BadResponse.
 */
export function pathOnOrigin(origin: string, reference: string | undefined, what: string): string {
  if (reference === undefined || reference === "") throw new BmcError("BadResponse", `${what} is missing`);
  if (reference.length > REFERENCE_LENGTH_MAX || !/^[\x21-\x7e]+$/.test(reference)) {
    throw new BmcError("BadResponse", `${what} is no usable reference`);
  }
  // A relative reference has no meaning in Redfish (DSP0266, resource identifiers): only a path or a whole URL does.
  const url = /^(?:\/|https?:)/i.test(reference) ? URL.parse(reference, origin) : null;
  if (url === null) throw new BmcError("BadResponse", `${what} is no path`);
  if (url.origin !== origin || url.username !== "" || url.password !== "") {
    throw new BmcError("BadResponse", `${what} points away from ${origin}`);
  }
  return url.pathname + url.search;
}
