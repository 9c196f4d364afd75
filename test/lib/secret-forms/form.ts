/** The name of a form, a text that contains a secret in this form, and the parts of the text that must not be shown. */
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
