import type { Edit } from "../edit.ts";
import type { SourceTexts } from "../source-texts.ts";

/** One way in which our own code could be wrong: a rule that safety hangs on, broken on purpose. */
export interface Mutant {
  id: string;
  /** The rule that the mutant breaks. */
  rule: string;
  /** Which file is meant, where several have the text. */
  file: string;
  /** Stands exactly once: in all of `src`, or else in the file. */
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

/** Makes mutants of `<folder>/<file>.ts`. */
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

/** What the mutant changes. @throws Error unless its text stands once, and is another one after. */
export function editOf({ id, file, find, replace }: Mutant, texts: SourceTexts): Edit {
  const places = texts.placesOf(find);
  const meant = places.length > 1 ? places.filter((place) => place.file === file) : places;
  const [place] = meant;
  if (place === undefined || meant.length > 1) {
    throw new Error(
      `mutant ${id}: its text stands ${meant.length} times: name the code as it is now, and enough of it`,
    );
  }
  if (find === replace) throw new Error(`mutant ${id} changes nothing`);
  return { ...place, replacement: replace };
}
