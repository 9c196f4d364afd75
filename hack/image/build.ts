import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Architecture } from "../lib/node-program.ts";
import { nodeLicense, nodeProgram } from "../lib/node-program.ts";
import { run } from "../lib/run.ts";
import { imageBillOfMaterials } from "./bill-of-materials.ts";
import { withDebianPackages } from "./debian.ts";
import type { Image } from "./oci.ts";
import { packImage } from "./oci.ts";
import { rootFiles } from "./root-files.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILD_TIMEOUT_MS = 120_000;

/**
 * Builds the image of the agent from scratch. The same commit gives the same digest.
 *
 * @param ca PEM file with certificate authorities that the agent trusts in addition to those of Debian.
 */
export async function buildImage(
  architecture: Architecture,
  ca: string | undefined,
  signal: AbortSignal,
): Promise<Image & { billOfMaterials: string }> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-image-"));
  try {
    const bundle = join(folder, "ironfence.js");
    const options = { env: {}, timeoutMs: BUILD_TIMEOUT_MS, signal };
    await run(process.execPath, [`${ROOT}hack/build/main.ts`, bundle], options);
    const billOfMaterials = imageBillOfMaterials(await readFile(`${bundle}.cdx.json`, "utf8"), architecture);
    const {
      name,
      version,
      description,
      license: terms,
      type,
    } = JSON.parse(await readFile(`${ROOT}package.json`, "utf8")) as Record<
      "name" | "version" | "description" | "license" | "type",
      string
    >;
    // Leaves out scripts and development dependencies: the image does not need them, and scanners report them.
    const packageJson = `${JSON.stringify({ name, version, description, license: terms, type }, undefined, 2)}\n`;
    const node = await nodeProgram(architecture, signal);
    const license = await nodeLicense(architecture, signal);
    const files = await withDebianPackages(
      architecture,
      (packages) => rootFiles({ architecture, packages, bundle, billOfMaterials, packageJson, node, license, ca }),
      signal,
    );
    return { ...packImage(files, { name: "ironfence", version, architecture }), billOfMaterials };
  } finally {
    await rm(folder, { recursive: true });
  }
}
