import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { Architecture } from "../lib/node-program.ts";
import { MALLOC_ENVIRONMENT, NODE_FLAGS } from "./node-flags.ts";
import { CA_FILE, OWN_CA_FILE } from "./root-files.ts";
import type { Entry } from "./tar.ts";
import { tar } from "./tar.ts";

// Packs an image in the OCI image layout, with a manifest.json as `docker save` writes it. The result depends only on
// the files.

const MEDIA = "application/vnd.oci.image";
/** A fixed creation time, so that the same files always give the same image. */
const CREATED = "1970-01-01T00:00:00Z";

export interface Image {
  /** The digest of the manifest, by which a registry names the image. */
  digest: string;
  archive: Buffer;
}

export interface ImageName {
  name: string;
  version: string;
  architecture: Architecture;
}

/** Packs the files of one layer as an image. */
export function packImage(files: readonly Entry[], { name, version, architecture }: ImageName): Image {
  const blobs: Entry[] = [];
  const add = (content: Buffer, mediaType: string): { mediaType: string; digest: string; size: number } => {
    const digest = sha256(content);
    blobs.push({ path: `blobs/sha256/${digest.slice("sha256:".length)}`, mode: 0o644, content });
    return { mediaType: `${MEDIA}.${mediaType}`, digest, size: content.length };
  };
  const layerTar = tar(files);
  const layer = add(gzipSync(layerTar, { level: 9 }), "layer.v1.tar+gzip");
  const config = add(json(configOf(sha256(layerTar), files, version, architecture)), "config.v1+json");
  const manifest = add(
    json({ schemaVersion: 2, mediaType: `${MEDIA}.manifest.v1+json`, config, layers: [layer] }),
    "manifest.v1+json",
  );
  const tag = `${name}:${version}`;
  // podman reads the whole name from the first annotation, and containerd from the second.
  const annotations = {
    "org.opencontainers.image.ref.name": `localhost/${tag}`,
    "io.containerd.image.name": `localhost/${tag}`,
  };
  const platform = { architecture, os: "linux" };
  const blobPath = ({ digest }: { digest: string }): string => `blobs/sha256/${digest.slice("sha256:".length)}`;
  const archive = tar([
    ...blobs,
    entry("oci-layout", { imageLayoutVersion: "1.0.0" }),
    entry("index.json", { schemaVersion: 2, manifests: [{ ...manifest, platform, annotations }] }),
    entry("manifest.json", [{ Config: blobPath(config), RepoTags: [tag], Layers: [blobPath(layer)] }]),
  ]);
  return { digest: manifest.digest, archive };
}

function configOf(diffId: string, files: readonly Entry[], version: string, architecture: Architecture): object {
  const hasOwnCa = files.some(({ path }) => path === OWN_CA_FILE);
  return {
    created: CREATED,
    architecture,
    os: "linux",
    config: {
      User: "65532:65532",
      WorkingDir: "/",
      Env: [
        "PATH=/usr/bin",
        "NODE_ENV=production",
        ...Object.entries(MALLOC_ENVIRONMENT).map(([name, value]) => `${name}=${value}`),
        `SSL_CERT_FILE=/${CA_FILE}`,
        ...(hasOwnCa ? [`NODE_EXTRA_CA_CERTS=/${OWN_CA_FILE}`] : []),
      ],
      // With --use-openssl-ca, Node trusts the file that SSL_CERT_FILE names.
      Entrypoint: ["/usr/bin/node", ...NODE_FLAGS, "--use-openssl-ca", "/app/ironfence.js"],
      Cmd: ["run"],
      Labels: { "org.opencontainers.image.title": "ironfence", "org.opencontainers.image.version": version },
    },
    rootfs: { type: "layers", diff_ids: [diffId] },
    history: [{ created: CREATED, created_by: "hack/image" }],
  };
}

function entry(path: string, content: object): Entry {
  return { path, mode: 0o644, content: json(content) };
}

function json(content: object): Buffer {
  return Buffer.from(JSON.stringify(content));
}

function sha256(content: Buffer): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
