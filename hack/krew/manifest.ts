/** What changes from one release to the next. */
export interface KrewRelease {
  /** The version without the `v` that krew adds. */
  version: string;
  /** Where users download the archive. */
  uri: string;
  /** Checksum of the archive, in hex. */
  sha256: string;
}

/** The program in the archive. krew links it as `kubectl-ironfence`. */
export const PROGRAM = "ironfence.js";
/** Node needs package.json to load the program as an ES module, and krew requires the license. */
export const ARCHIVED = [PROGRAM, "package.json", "LICENSE"] as const;

/** The manifest of the kubectl plugin for krew's index (krew.googlecontainertools.github.com/v1alpha2). */
export function krewManifest({ version, uri, sha256 }: KrewRelease): object {
  return {
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "ironfence" },
    spec: {
      version: `v${version}`,
      shortDescription: "Fence bare-metal nodes: check, status, explain",
      description: [
        "Shows whether every node of a bare-metal cluster could be fenced now, why a node is remediated or not,",
        "and what a fence does at this moment. Fences, pauses and resumes on request. The agent of ironfence must",
        "run in the cluster.",
        "",
      ].join("\n"),
      caveats: [
        "The plugin needs Node 24 or newer on the PATH.",
        "krew links the plugin only. Let kubectl complete its commands as well:",
        "  ln -s kubectl-ironfence ~/.krew/bin/kubectl_complete-ironfence",
        "",
      ].join("\n"),
      platforms: [
        {
          // The plugin is tested only on Linux.
          selector: { matchLabels: { os: "linux" } },
          uri,
          sha256,
          files: ARCHIVED.map((name) => ({ from: name, to: "." })),
          bin: PROGRAM,
        },
      ],
    },
  };
}
