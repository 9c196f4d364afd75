/** A name of a form, a text in which a secret has it, and the parts of that text of which none may be shown. */
export type SecretForm = [name: string, text: string, secrets: readonly string[]];

export const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A private key in PEM whose lines depend on a text. */
export function keyOf(text: string): { pem: (kind: string, headers?: string[]) => string[]; pemLines: string[] } {
  const pemLines = [1, 2, 3].map((line) => base64(`${line} of the key of ${text}`));
  const pem = (kind: string, headers: string[] = []): string[] => [
    `-----BEGIN ${kind}-----`,
    ...headers,
    ...pemLines,
    `-----END ${kind}-----`,
  ];
  return { pem, pemLines };
}
