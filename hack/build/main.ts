import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Plugin } from "esbuild";
import { NODE_GUARD } from "./node-guard.ts";
import { billOfMaterials, bundledPackages, licenseNotice } from "./packages.ts";

// Bundles the agent with its dependencies into one file, so that the image contains no node_modules. A second file next
// to the bundle lists its contents (a software bill of materials, CycloneDX).

const HELP = `Bundles src/main.ts into one file that Node 24 runs without node_modules.

  node hack/build/main.ts [OUTPUT]      OUTPUT: dist/ironfence.js by default

Writes OUTPUT.cdx.json next to it: the packages of the bundle, in CycloneDX.
`;

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Some dependencies are CommonJS and call `require` for Node's own modules, which an ES module does not have. */
const REQUIRE_SHIM = 'import{createRequire as r}from"node:module";const require=r(import.meta.url);';

/** Replaces the index files of two libraries, because every agent would need memory for all that they load. */
const SLIM_LIBRARIES: Plugin = {
  name: "slim-libraries",
  setup(builder) {
    const replace = (filter: RegExp, file: string): void =>
      builder.onResolve({ filter }, () => ({ path: `${ROOT}hack/build/${file}` }));
    replace(/^undici$/, "slim-undici.mjs");
    replace(/^@kubernetes\/client-node$/, "slim-client-node.mjs");
    builder.onResolve({ filter: /^\.\/gen\/index\.js$/ }, ({ importer }) =>
      importer.includes("/@kubernetes/client-node/")
        ? { path: `${ROOT}hack/build/no-generated-client.mjs` }
        : undefined,
    );
  },
};

const [argument] = process.argv.slice(2);
if (argument === "--help" || argument === "-h") {
  process.stdout.write(HELP);
} else {
  const outfile = argument ?? `${ROOT}dist/ironfence.js`;
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ["src/main.ts"],
    outfile,
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    // V8 keeps the source in memory, so white space and comments are removed. Names stay, for stack traces.
    minifySyntax: true,
    minifyWhitespace: true,
    // `licenseNotice` writes the licenses of all packages.
    legalComments: "none",
    metafile: true,
    plugins: [SLIM_LIBRARIES],
    banner: { js: `${NODE_GUARD}\n${REQUIRE_SHIM}` },
    logLevel: "warning",
  });
  const packages = bundledPackages(metafile);
  await writeFile(outfile, escapeNonAscii((await readFile(outfile, "utf8")) + (await licenseNotice(packages))));
  await chmod(outfile, 0o755);
  await writeFile(`${outfile}.cdx.json`, billOfMaterials(packages));
  process.stdout.write(`${outfile}: ${((await stat(outfile)).size / 2 ** 20).toFixed(2)} MiB\n`);
}

/**
 * A single character outside of ASCII makes V8 store the whole source with two bytes per character. esbuild leaves some
 * in regular expressions and notices.
 */
function escapeNonAscii(source: string): string {
  return source.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
