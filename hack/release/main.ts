import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { makeRelease } from "./artifacts.ts";
import { changesOf } from "./notes.ts";

const HELP = `Makes everything that a release publishes, in one folder. It publishes nothing.

  npm run release -- --base-url https://HOST/PATH --registry HOST/PATH [--output FOLDER]
                    the commit must carry the version's tag
  npm run release -- --dry-run [--output FOLDER]
                    any commit, even with uncommitted changes

  --base-url URL    where the files will be downloaded; the manifest for krew names it
  --registry NAME   where the image will be pulled from, such as ghcr.io/example; the chart and the manifests name it
  --output FOLDER   dist/release by default; it must be empty or hold an earlier release, which is deleted first
  --dry-run         tries a release: no tag and no entry in CHANGELOG.md is needed

The folder contains the Helm chart, the manifests (deploy, with the bundle of OLM, and examples), an image and a single executable for amd64 and arm64, the kubectl plugin with its
manifest, bills of materials (CycloneDX), the notes and SHA256SUMS. The same commit gives the same files. It has the same requirements as \`npm run image\` (see its --help), and takes about two minutes.
`;

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TIMEOUT_MS = 1_200_000;
const EXAMPLE_URL = "https://downloads.example/ironfence";
const EXAMPLE_REGISTRY = "registry.example";
/** Host, port and path of an image reference. */
const REGISTRY = /^[a-z0-9][-a-z0-9.]*(?::[0-9]+)?(?:\/[a-z0-9][-a-z0-9._]*)*$/;

const { values } = parseArgs({
  options: {
    "base-url": { type: "string" },
    registry: { type: "string" },
    "dry-run": { type: "boolean", default: false },
    output: { type: "string", default: `${ROOT}dist/release` },
    help: { type: "boolean", short: "h", default: false },
  },
});
const { version } = JSON.parse(await readFile(`${ROOT}package.json`, "utf8")) as { version: string };
const changelog = await readFile(`${ROOT}CHANGELOG.md`, "utf8");
const changes = changesOf(changelog, values["dry-run"] ? "Unreleased" : version);
const registry = values.registry ?? EXAMPLE_REGISTRY;
const problems = [
  ...(REGISTRY.test(registry) ? [] : [`--registry is not HOST/PATH in small letters: ${registry}`]),
  ...(values["dry-run"] ? [] : problemsOf(version)),
  ...((await mayReplace(values.output))
    ? []
    : [`${values.output} has files and no SHA256SUMS of an earlier release: name an empty folder with --output`]),
];
if (values.help) {
  process.stdout.write(HELP);
} else if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`error: ${problem}\n`);
  if (!values["dry-run"])
    process.stderr.write(
      "\n`npm run release -- --dry-run` tries a release from any commit, even with uncommitted changes.\n",
    );
  process.exitCode = 2;
} else {
  await rm(values.output, { recursive: true, force: true });
  await mkdir(values.output, { recursive: true });
  const progress = (line: string): void => void process.stdout.write(`release: ${line}\n`);
  const baseUrl = values["base-url"] ?? EXAMPLE_URL;
  const options = { version, changes: changes ?? "", baseUrl, registry, folder: values.output, progress };
  await makeRelease(options, AbortSignal.timeout(TIMEOUT_MS));
  process.stdout.write(`${(await readdir(values.output)).map((file) => join(values.output, file)).join("\n")}\n`);
}

/** Whether a folder is missing, empty, or contains an earlier release. Only then may it be replaced. */
async function mayReplace(folder: string): Promise<boolean> {
  const files = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  return files.length === 0 || files.includes("SHA256SUMS");
}

/** The reasons why this commit cannot be released. */
function problemsOf(wanted: string): string[] {
  const git = (...args: string[]): string => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
  const found: string[] = [];
  if (values["base-url"] === undefined) found.push("--base-url is missing");
  if (values.registry === undefined) found.push("--registry is missing");
  if (git("status", "--porcelain") !== "") found.push("the working tree has changes that are not committed");
  if (!git("tag", "--points-at", "HEAD").split("\n").includes(`v${wanted}`))
    found.push(`this commit has no tag v${wanted}, the version in package.json`);
  if (changes === undefined) found.push(`CHANGELOG.md has no section [${wanted}]`);
  return found;
}
