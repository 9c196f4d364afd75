import { readFileSync } from "node:fs";
import { ClusterConfigError } from "../../errors.ts";

/**
 * The token in `file`, without the newline at its end, which a header must not contain. @throws Error if it is missing
 * or empty.
 */
export function readToken(file: string): string {
  const token = readFileSync(file, "utf8").trim();
  if (token === "") throw new ClusterConfigError(`the token file ${file} is empty: write a token to it`);
  return token;
}
