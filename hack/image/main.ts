import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { run } from "../lib/run.ts";
import { withDebianPackages } from "./debian.ts";
import { packImage } from "./oci.ts";
import { rootFiles } from "./root-files.ts";

const HELP = `Builds the image of the agent for amd64 from scratch, without a container tool and without a base image.

  npm run image -- [--output FILE] [--ca FILE]

  --output FILE   archive in the OCI layout, dist/ironfence-image.tar by default
  --ca FILE       PEM file with certificate authorities that the agent trusts in addition to those of Node

It needs Debian 12 or a system with its apt sources: apt-get fetches glibc, libstdc++ and the certificate authorities, in
the versions and with the checksums of hack/image/debian.json. The same commit gives the same digest.
`;

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILD_TIMEOUT_MS = 120_000;

const { values } = parseArgs({
  options: {
    output: { type: "string", default: `${ROOT}dist/ironfence-image.tar` },
    ca: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
} else {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-image-"));
  try {
    const signal = AbortSignal.timeout(2 * BUILD_TIMEOUT_MS);
    const bundle = join(folder, "ironfence.js");
    await run(process.execPath, [`${ROOT}hack/build/main.ts`, bundle], {
      env: {},
      timeoutMs: BUILD_TIMEOUT_MS,
      signal,
    });
    const packageJson = `${ROOT}package.json`;
    const { version } = JSON.parse(await readFile(packageJson, "utf8")) as { version: string };
    const files = await withDebianPackages(
      (packages) => rootFiles({ packages, bundle, packageJson, ca: values.ca }),
      signal,
    );
    const { digest, archive } = packImage(files, { name: "ironfence", version });
    await mkdir(dirname(values.output), { recursive: true });
    await writeFile(values.output, archive);
    process.stdout.write(`${values.output}: ${(archive.length / 2 ** 20).toFixed(0)} MiB, ${digest}\n`);
  } finally {
    await rm(folder, { recursive: true });
  }
}
