/** One item of a list in a page, with its nested items. */
export interface Entry {
  text: string;
  nested: string[];
}

/** A test that a page names: its file below `test/`, and its name. */
export interface NamedTest {
  file: string;
  name: string;
}

/** The items of all lists of a page, each as one line. */
export function readEntries(page: string): Entry[] {
  const entries: Entry[] = [];
  let isOpen = false;
  for (const line of page.split("\n")) {
    const [, top] = /^(?:-|\d+\.) (.*)$/.exec(line) ?? [];
    const [, nested] = /^ +- (.*)$/.exec(line) ?? [];
    const entry = entries.at(-1);
    if (top !== undefined) {
      entries.push({ text: top, nested: [] });
      isOpen = true;
    } else if (!isOpen || entry === undefined || !/^ +\S/.test(line)) isOpen = false;
    else if (nested !== undefined) entry.nested.push(nested);
    else if (entry.nested.length === 0) entry.text += ` ${line.trim()}`;
    else entry.nested.push(`${entry.nested.pop() ?? ""} ${line.trim()}`);
  }
  return entries;
}

/** The tests that an entry names in its nested items. @throws Error for an item that names a file without a test. */
export function namedTests({ nested }: Entry): NamedTest[] {
  return nested
    .filter((item) => /^`[^`]*\.test\.ts/.test(item))
    .map((item) => {
      const [, file, name] = /^`([^`]+\.test\.ts)` (\S.*)$/.exec(item) ?? [];
      if (file === undefined || name === undefined) throw new Error(`not a file and the name of a test: ${item}`);
      return { file, name };
    });
}
