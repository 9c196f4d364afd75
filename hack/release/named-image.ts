/**
 * Names the registry that a release is pushed to wherever a file of `deploy` or of the chart names the image, which the
 * repository itself names without a registry.
 *
 * @param registry host and path, such as `ghcr.io/example`.
 */
export function withRegistry(text: string, registry: string, version: string): string {
  return text
    .replace(/^(image:\n(?: +#.*\n)* +repository: )ironfence$/m, `$1${registry}/ironfence`)
    .replace(/("default": |default `)"ironfence"/, `$1"${registry}/ironfence"`)
    .replaceAll(
      new RegExp(`((?:i|containerI)mage: )ironfence:${version.replaceAll(".", "\\.")}$`, "gm"),
      `$1${registry}/ironfence:${version}`,
    );
}
