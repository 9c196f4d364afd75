import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ARCHITECTURES } from "../lib/node-program.ts";
import { buildImage } from "./build.ts";
import { pinDebianPackages } from "./debian.ts";

const HELP = `Builds the image of the agent from scratch, without a container tool and without a base image.

  npm run image -- [--arch ARCH] [--output FILE] [--ca FILE]
  npm run image -- --pin

  --arch ARCH     ${ARCHITECTURES.join(" or ")}; amd64 by default
  --output FILE   archive in the OCI layout, dist/ironfence-image.tar by default
  --ca FILE       PEM file with certificate authorities that the agent trusts in addition to those of Debian
  --pin           writes the newest versions of Debian's packages, with their checksums, to hack/image/debian.json

It needs Debian 12 or a system with its apt sources: apt-get fetches glibc, libstdc++ and the certificate authorities, in
the versions and with the checksums of hack/image/debian.json. The same commit gives the same digest. apt and npm use the
mirrors and proxies that are set for them on this machine. On another system, build it in a container:

  podman run --rm -v "$PWD:/src" -w /src docker.io/library/node:24-bookworm npm run image

Then push it:

  podman load -i dist/ironfence-image.tar && podman push localhost/ironfence:VERSION REGISTRY/ironfence:VERSION
`;

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TIMEOUT_MS = 600_000;

const { values } = parseArgs({
  options: {
    arch: { type: "string", default: "amd64" },
    output: { type: "string", default: `${ROOT}dist/ironfence-image.tar` },
    ca: { type: "string" },
    pin: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
const architecture = ARCHITECTURES.find((name) => name === values.arch);
const signal = AbortSignal.timeout(TIMEOUT_MS);
if (values.help) {
  process.stdout.write(HELP);
} else if (architecture === undefined) {
  process.stderr.write(`error: --arch must be ${ARCHITECTURES.join(" or ")}, not ${values.arch}\n`);
  process.exitCode = 2;
} else if (values.pin) {
  await pinDebianPackages(signal);
} else if (values.ca !== undefined && !(await hasCertificate(values.ca))) {
  process.stderr.write(`error: --ca: ${values.ca} is not a PEM file with certificates\n`);
  process.exitCode = 2;
} else {
  const { digest, archive } = await buildImage(architecture, values.ca, signal);
  await mkdir(dirname(values.output), { recursive: true });
  await writeFile(values.output, archive);
  process.stdout.write(`${values.output}: ${(archive.length / 2 ** 20).toFixed(0)} MiB, ${digest}\n`);
}

async function hasCertificate(file: string): Promise<boolean> {
  return (await readFile(file, "utf8").catch(() => "")).includes("-----BEGIN CERTIFICATE-----");
}
