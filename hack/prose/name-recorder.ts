// Takes the place of node:test when the names of tests are read: it records names and runs no test.

type Body = (...args: never[]) => unknown;

/** The names of the tests that were declared since the last call. */
export function takeNames(): string[] {
  return names.splice(0);
}

const names: string[] = [];

function recordTest(name: unknown): void {
  if (typeof name === "string") names.push(name);
}

function runGroup(...args: readonly unknown[]): void {
  const body = args.find((arg): arg is Body => typeof arg === "function");
  body?.();
}

function ignore(): void {
  // A hook has no name.
}

export { recordTest as it, recordTest as test, runGroup as describe, runGroup as suite };
export { ignore as after, ignore as afterEach, ignore as before, ignore as beforeEach };
