import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Architecture } from "../lib/node-program.ts";
import type { DebianPackage } from "./debian.ts";
import type { Entry } from "./tar.ts";

/** Paths of the libraries of an architecture in Debian, and of the dynamic linker in programs. */
const PLACES = {
  amd64: { libraries: "lib/x86_64-linux-gnu", linker: "ld-linux-x86-64.so.2", link: "lib64/ld-linux-x86-64.so.2" },
  arm64: { libraries: "lib/aarch64-linux-gnu", linker: "ld-linux-aarch64.so.1", link: "lib/ld-linux-aarch64.so.1" },
} as const satisfies Record<Architecture, object>;

/** The libraries that Node is linked with. */
function librariesOf(architecture: Architecture): [DebianPackage, string][] {
  const { libraries, linker } = PLACES[architecture];
  return [
    ...[linker, "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"].map((name): [DebianPackage, string] => [
      "libc6",
      `${libraries}/${name}`,
    ]),
    ["libstdc++6", `usr/${libraries}/libstdc++.so.6.0.30`],
    ["libgcc-s1", `${libraries}/libgcc_s.so.1`],
  ];
}

/** Packages whose licenses come with the image; gcc-12-base has those of libstdc++6 and libgcc-s1. */
const LICENSED = ["libc6", "gcc-12-base", "ca-certificates"] as const;

function copyrightOf(name: DebianPackage, folder: string): [path: string, source: string] {
  const path = `usr/share/doc/${name}/copyright`;
  return [path, join(folder, path)];
}

/** The certificate authorities that Debian trusts, in one file. */
export const CA_FILE = "etc/ssl/certs/ca-certificates.crt";
/** The certificate authorities of the build argument. */
export const OWN_CA_FILE = "etc/ssl/certs/own.crt";

/** The contents of the image. */
export interface Contents {
  architecture: Architecture;
  packages: Readonly<Record<DebianPackage, string>>;
  /** The bundle of the agent, as `npm run build` makes it. */
  bundle: string;
  /** The bill of materials of the whole image (CycloneDX). */
  billOfMaterials: string;
  /** Text of package.json, which declares that the bundle is an ES module. */
  packageJson: string;
  /** Node's program for the architecture. */
  node: string;
  /** Node's license. */
  license: string;
  /** A file with further certificate authorities. */
  ca?: string | undefined;
}

/** Every file of the image: no shell, no package manager, and nothing that is not needed to run the agent. */
export async function rootFiles(contents: Contents): Promise<Entry[]> {
  const { architecture, packages, bundle, billOfMaterials, packageJson, node, license, ca } = contents;
  const { libraries: folder, linker, link } = PLACES[architecture];
  const file = async (path: string, source: string, mode = 0o644): Promise<Entry> => ({
    path,
    mode,
    content: await readFile(source),
  });
  const text = (path: string, content: string): Entry => ({ path, mode: 0o644, content: Buffer.from(content) });
  const libraries = librariesOf(architecture).map(([name, path]) =>
    file(path, join(packages[name], path), path.endsWith(linker) ? 0o755 : 0o644),
  );
  return [
    ...(await Promise.all(libraries)),
    { path: link, target: `/${folder}/${linker}` },
    { path: `usr/${folder}/libstdc++.so.6`, target: "libstdc++.so.6.0.30" },
    // If users may run a program but not read it, the kernel writes no core dump of it and hides its memory from their
    // other processes.
    await file("usr/bin/node", node, 0o711),
    await file("app/ironfence.js", bundle),
    text("app/ironfence.js.cdx.json", billOfMaterials),
    text("app/package.json", packageJson),
    text(CA_FILE, await certificates(packages["ca-certificates"])),
    ...(ca === undefined ? [] : [await file(OWN_CA_FILE, ca)]),
    ...(await Promise.all(LICENSED.map((name) => file(...copyrightOf(name, packages[name]))))),
    await file("usr/share/doc/node/copyright", license),
    text("etc/passwd", "ironfence:x:65532:65532::/:/nonexistent\n"),
    text("etc/group", "ironfence:x:65532:\n"),
    text("etc/nsswitch.conf", "hosts: files dns\n"),
  ];
}

async function certificates(folder: string): Promise<string> {
  const mozilla = join(folder, "usr/share/ca-certificates/mozilla");
  const names = (await readdir(mozilla)).filter((name) => name.endsWith(".crt")).toSorted();
  const texts = await Promise.all(names.map((name) => readFile(join(mozilla, name), "utf8")));
  return texts.map((certificate) => `${certificate.trim()}\n`).join("");
}
