import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** For each node, the nodes to which it has an edge. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** For each file of `src` in `root`, the files of `src` that it imports, including imports of types. */
export function importsOfFiles(root: string): Graph {
  const graph = new Map<string, Set<string>>();
  for (const file of globSync("src/**/*.ts", { cwd: root })) {
    const source = readFileSync(join(root, file), "utf8");
    const specifiers = [...source.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(
      ([, specifier = ""]) => specifier,
    );
    graph.set(file, new Set(specifiers.map((specifier) => relative(root, join(root, dirname(file), specifier)))));
  }
  return graph;
}

/** For each folder, the other folders from which its files import. */
export function importsOfFolders(files: Graph): Graph {
  const graph = new Map<string, Set<string>>();
  for (const [file, imported] of files) {
    const own = dirname(file);
    const others = graph.get(own) ?? new Set();
    for (const other of imported) if (dirname(other) !== own) others.add(dirname(other));
    graph.set(own, others);
  }
  return graph;
}

/** The nodes that are part of a cycle. */
export function onCircles(graph: Graph): string[] {
  return [...graph.keys()].filter((start) => {
    const reached = new Set<string>();
    const open = [...(graph.get(start) ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(...(graph.get(next) ?? []));
    }
    return reached.has(start);
  });
}

/** The figures of the table in docs/contributing/architecture.md. */
export function figuresOf(files: Graph): Record<string, number> {
  const folders = importsOfFolders(files);
  const sizes = new Map<string, number>();
  for (const file of files.keys()) sizes.set(dirname(file), (sizes.get(dirname(file)) ?? 0) + 1);
  return {
    files: files.size,
    folders: folders.size,
    "files in the largest folder": Math.max(...sizes.values()),
    "folders in a circle": onCircles(folders).length,
    "files in a circle": onCircles(files).length,
    "imports of a file by another": count(files),
    "arrows between folders": count(folders),
  };
}

function count(graph: Graph): number {
  return [...graph.values()].reduce((sum, imported) => sum + imported.size, 0);
}
