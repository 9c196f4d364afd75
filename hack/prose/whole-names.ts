import { globSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { takeNames } from "./name-recorder.ts";
import { problemsOfName } from "./test-names.ts";

// Checks the whole name of every test, as the runner prints it: lint reads source text, in which a name from a list of
// cases has no beginning. It loads all test files and runs none of them.

const TESTS = new URL("../../test/", import.meta.url);
const RECORDER = new URL("name-recorder.ts", import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "node:test"
      ? { url: RECORDER, format: "module-typescript", shortCircuit: true }
      : next(specifier, context),
});

let count = 0;
for (const file of globSync("**/*.test.ts", { cwd: fileURLToPath(TESTS) }).sort()) {
  await import(new URL(file, TESTS).href);
  for (const name of takeNames()) {
    count += 1;
    for (const problem of problemsOfName(name)) console.log(`test/${file}: test name ${problem}: “${name}”`);
  }
}
console.log(`${count} names`);
// A loaded file may have opened a server.
process.exit();
