/** One way in which our own code could be wrong: a rule that safety hangs on, broken on purpose. */
export interface Mutant {
  id: string;
  /** The rule that the mutant breaks. */
  rule: string;
  file: string;
  /** Stands exactly once in the file. */
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
