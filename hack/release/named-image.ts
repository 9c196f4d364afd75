/**
 * Adds the registry of a release to every image name in a file of `deploy` or of the chart. In the repository, the
 * image has no registry.
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
