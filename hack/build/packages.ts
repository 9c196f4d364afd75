import { readFile, readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Metafile } from "esbuild";
import lock from "../../package-lock.json" with { type: "json" };

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MODULES = "node_modules/";
/** Matches a path up to the folder of its innermost package. */
const PACKAGE_FOLDER = /node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/;
const LICENSE_FILE = /^(?:LICEN[CS]E|COPYING)(?:\.(?:md|txt))?$/i;

/** A package that has code in a bundle. */
interface BundledPackage {
  name: string;
  version: string;
  /** Checksum as in a lock file: the algorithm, and the value in base 64. */
  integrity: string;
  /** SPDX identifier. */
  license: string;
  /** Relative to the root, as in the lock file. */
  folder: string;
}

/** The packages that have code in the outputs of esbuild, sorted by name. */
export function bundledPackages({ outputs }: Metafile): BundledPackage[] {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  const folders = inputs.flatMap(([path, { bytesInOutput }]) =>
    bytesInOutput > 0 ? (PACKAGE_FOLDER.exec(path) ?? []) : [],
  );
  const locked: Record<string, Partial<Omit<BundledPackage, "folder">> | undefined> = lock.packages;
  return [...new Set(folders)].toSorted().map((folder) => {
    const { version, integrity, license } = locked[folder] ?? {};
    if (version === undefined || integrity === undefined || license === undefined)
      throw new Error(`package-lock.json lacks ${folder}, its checksum or its license`);
    return { name: folder.slice(folder.lastIndexOf(MODULES) + MODULES.length), version, integrity, license, folder };
  });
}

/** The bill of materials of a bundle, in CycloneDX. */
export function billOfMaterials(packages: readonly BundledPackage[]): string {
  const { name, version, license } = lock.packages[""];
  const components = packages.map((bundled) => {
    const [algorithm = "", content = ""] = bundled.integrity.split("-");
    return {
      type: "library",
      name: bundled.name,
      version: bundled.version,
      purl: `pkg:npm/${bundled.name.replace("@", "%40")}@${bundled.version}`,
      licenses: [{ expression: bundled.license }],
      hashes: [{ alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(content, "base64").toString("hex") }],
    };
  });
  const component = { type: "application", name, version, licenses: [{ expression: license }] };
  const bill = { bomFormat: "CycloneDX", specVersion: "1.5", version: 1, metadata: { component }, components };
  return `${JSON.stringify(bill, undefined, 2)}\n`;
}

/** A comment with the license texts of packages, as the licenses require: each text once, after its packages. */
export async function licenseNotice(packages: readonly BundledPackage[]): Promise<string> {
  const namesByText = new Map<string, string[]>();
  for (const bundled of packages) {
    const text = await licenseText(bundled);
    namesByText.set(text, [...(namesByText.get(text) ?? []), `${bundled.name} ${bundled.version}`]);
  }
  const parts = [...namesByText].map(([text, names]) => `${names.join(", ")}:\n\n${text}`);
  return `/*! Licenses of the packages in this file\n\n${parts.join("\n\n\n").replaceAll("*/", "* /")}\n*/\n`;
}

async function licenseText({ license, folder }: BundledPackage): Promise<string> {
  // The Apache license names no author, and its copies differ only in white space, so our copy is used for all
  // packages.
  const from = license === lock.packages[""].license ? ROOT : `${ROOT}${folder}/`;
  const file = (await readdir(from)).find((name) => LICENSE_FILE.test(name));
  // Some packages only name their license.
  return file === undefined ? license : (await readFile(`${from}${file}`, "utf8")).trim();
}
