import { BmcError } from "../../interface/errors.ts";

const REFERENCE_LENGTH_MAX = 2_048;

/**
 * Returns the path of a reference of a BMC (`@odata.id`, the `target` of an action, a `Location`) on its own origin. A
 * reference to any other host is refused, because a request to it would send the session token to that host.
 *
 * @param what names the reference in the error.
 * @throws BmcError BadResponse.
 */
export function pathOnOrigin(origin: string, reference: string | undefined, what: string): string {
  if (reference === undefined || reference === "") throw new BmcError("BadResponse", `${what} is missing`);
  if (reference.length > REFERENCE_LENGTH_MAX || !/^[\x21-\x7e]+$/.test(reference)) {
    throw new BmcError("BadResponse", `${what} is not a usable reference`);
  }
  // Redfish has no relative references (DSP0266, resource identifiers): only a path or a complete URL is valid.
  const url = /^(?:\/|https?:)/i.test(reference) ? URL.parse(reference, origin) : null;
  if (url === null) throw new BmcError("BadResponse", `${what} is not a path`);
  if (url.origin !== origin || url.username !== "" || url.password !== "") {
    throw new BmcError("BadResponse", `${what} points to another host than ${origin}`);
  }
  return url.pathname + url.search;
}
