import { readFileSync } from "node:fs";
import { ClusterConfigError } from "../../errors.ts";

/** The token in `file`, trimmed: files end in a newline, which no header may hold. @throws Error if there is none. */
export function readToken(file: string): string {
  const token = readFileSync(file, "utf8").trim();
  if (token === "") throw new ClusterConfigError(`the token file ${file} is empty: write a token to it`);
  return token;
}
