/** The content of the notes of a release. */
export interface Release {
  version: string;
  /** What has changed, in Markdown. */
  changes: string;
  /** Digest of the image by architecture. */
  images: Readonly<Record<string, string>>;
  files: readonly string[];
}

/**
 * Finds the text of a version in a changelog that follows Keep a Changelog.
 *
 * @param section the text in brackets of its heading: a version, or "Unreleased".
 * @returns the lines under its heading; undefined if there is no such heading or no text.
 */
export function changesOf(changelog: string, section: string): string | undefined {
  const parts = changelog.split(/^## /m);
  const found = parts.find((part) => part.startsWith(`[${section}]`));
  const lines = found?.split("\n").slice(1) ?? [];
  // Link definitions at the end of the file do not belong to a version.
  const text = lines.filter((line) => !/^\[[^\]]+\]: \S+$/.test(line));
  return text.join("\n").trim() || undefined;
}

/** Writes the notes of a release, in Markdown. */
export function releaseNotes({ version, changes, images, files }: Release): string {
  const digests = Object.entries(images).map(([architecture, digest]) => `| ${architecture} | \`${digest}\` |`);
  return [
    `# ironfence ${version}`,
    "",
    "Read [Upgrading](docs/how-to/upgrade.md) before you replace an older version.",
    "",
    "## Image",
    "",
    "| Architecture | Digest |",
    "| --- | --- |",
    ...digests,
    "",
    "## Files",
    "",
    ...files.map((file) => `- \`${file}\``),
    "",
    "`sha256sum --check --ignore-missing SHA256SUMS` compares what you downloaded with its checksum.",
    "",
    "## Changes",
    "",
    changes,
    "",
  ].join("\n");
}
