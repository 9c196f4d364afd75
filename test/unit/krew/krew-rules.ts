import { parse } from "yaml";

/** A manifest for krew. Every field may be missing. */
interface Manifest {
  apiVersion?: string;
  kind?: string;
  metadata?: { name?: string };
  spec?: {
    version?: string;
    shortDescription?: string;
    platforms?: readonly Platform[];
    [field: string]: unknown;
  };
}

interface Platform {
  uri?: string;
  sha256?: string;
  bin?: string;
  files?: readonly { from?: string; to?: string }[];
  selector?: { matchLabels?: object; matchExpressions?: readonly { key: string }[] };
}

const SPEC_FIELDS = new Set(["version", "shortDescription", "description", "caveats", "homepage", "platforms"]);
const PLATFORM_FIELDS = new Set(["uri", "sha256", "selector", "files", "bin"]);

/** The problems for which krew would refuse a manifest, by the rules of its developer guide; empty if it accepts it. */
export function krewProblems(text: string): string[] {
  const { apiVersion, kind, metadata, spec = {} } = parse(text) as Manifest;
  const { version = "", shortDescription = "", platforms = [] } = spec;
  return [
    ...(apiVersion === "krew.googlecontainertools.github.com/v1alpha2" ? [] : ["apiVersion"]),
    ...(kind === "Plugin" ? [] : ["kind"]),
    ...(/^[\w-]+$/.test(metadata?.name ?? "") ? [] : ["metadata.name"]),
    ...(/^v\d+\.\d+\.\d+(?:-[\w.-]+)?$/.test(version) ? [] : ["version"]),
    ...(/^[^\r\n]{1,50}$/.test(shortDescription) ? [] : ["shortDescription"]),
    ...(platforms.length > 0 ? [] : ["platforms"]),
    ...unknown(spec, SPEC_FIELDS),
    ...platforms.flatMap(problemsOfPlatform),
  ];
}

function problemsOfPlatform(platform: Platform): string[] {
  const { uri = "", sha256 = "", bin = "", files, selector } = platform;
  const keys = [
    ...Object.keys(selector?.matchLabels ?? {}),
    ...(selector?.matchExpressions ?? []).map(({ key }) => key),
  ];
  const areFiles = files === undefined || (files.length > 0 && files.every(({ from, to }) => Boolean(from && to)));
  return [
    ...(/^https:\/\/\S+\.(?:tar\.gz|zip)$/.test(uri) ? [] : ["uri"]),
    ...(/^[a-f0-9]{64}$/.test(sha256) ? [] : ["sha256"]),
    ...(bin === "" ? ["bin"] : []),
    ...(areFiles ? [] : ["files"]),
    ...(keys.length > 0 && keys.every((key) => key === "os" || key === "arch") ? [] : ["selector"]),
    ...unknown(platform, PLATFORM_FIELDS),
  ];
}

function unknown(value: object, known: ReadonlySet<string>): string[] {
  return Object.keys(value).filter((field) => !known.has(field));
}
