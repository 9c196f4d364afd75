/** A name with more edits than this is another name, not a misspelt one. */
const EDITS_MAX = 3;

/**
 * The name that was probably meant: the one with the fewest edits (a character added, removed or replaced, or two
 * swapped), at most three and at most a third of its length. Undefined if no name is close, or several are equally
 * close.
 */
export function didYouMean(name: string, candidates: Iterable<string>): string | undefined {
  let best: { candidate: string; edits: number } | undefined;
  let isTied = false;
  for (const candidate of candidates) {
    const most = Math.min(EDITS_MAX, Math.ceil(candidate.length / 3));
    if (candidate === name || Math.abs(candidate.length - name.length) > most) continue;
    const edits = countEdits(name.toLowerCase(), candidate.toLowerCase());
    if (edits > most || (best !== undefined && edits > best.edits)) continue;
    isTied = best !== undefined && edits === best.edits;
    best = { candidate, edits };
  }
  return isTied ? undefined : best?.candidate;
}

/** The optimal string alignment distance. */
function countEdits(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const line = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      let edits = Math.min(
        (last[column] ?? 0) + 1,
        (line[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isSwapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (isSwapped) edits = Math.min(edits, (beforeLast[column - 2] ?? 0) + 1);
      line.push(edits);
    }
    [beforeLast, last] = [last, line];
  }
  return last[b.length] ?? 0;
}
