import type { Edit } from "../edit.ts";
import type { SourceTexts } from "../source-texts.ts";

/** A deliberate change of our code that breaks one rule, usually a safety rule. */
export interface Mutant {
  id: string;
  /** The rule that the mutant breaks. */
  rule: string;
  /** The file, which matters if several contain the text. */
  file: string;
  /** Occurs exactly once: in all of `src`, or otherwise in the file. */
  find: string;
  replace: string;
  /** Test files of which one must fail. */
  killers: readonly string[];
}

type MakeMutant = (
  id: string,
  file: string,
  rule: string,
  find: string,
  replace: string,
  ...killers: readonly string[]
) => Mutant;

/** Creates mutants of `<folder>/<file>.ts`. */
export function mutantsOf(folder: string): MakeMutant {
  return (id, file, rule, find, replace, ...killers) => ({
    id,
    rule,
    file: `${folder}/${file}.ts`,
    find,
    replace,
    killers,
  });
}

/** The edit of the mutant. @throws Error unless its text occurs once and the edit changes it. */
export function editOf({ id, file, find, replace }: Mutant, texts: SourceTexts): Edit {
  const places = texts.placesOf(find);
  const meant = places.length > 1 ? places.filter((place) => place.file === file) : places;
  const [place] = meant;
  if (place === undefined || meant.length > 1) {
    throw new Error(
      `mutant ${id}: its text occurs ${meant.length} times: name the code as it is now, and enough of it`,
    );
  }
  if (find === replace) throw new Error(`mutant ${id} changes nothing`);
  return { ...place, replacement: replace };
}
