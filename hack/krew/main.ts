import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { releaseForKrew } from "./release.ts";

const HELP = `Packs the output of \`npm run build\` as a kubectl plugin for krew.

  npm run build:krew -- --uri https://HOST/PATH/NAME.tar.gz [--folder FOLDER]

Writes NAME.tar.gz and ironfence.yaml, the manifest with its address and checksum, to FOLDER (dist by default). Upload
the archive to that address, and give the manifest to users (\`kubectl krew install --manifest=ironfence.yaml\`) or to an
index of krew.
`;

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));

const { values } = parseArgs({
  options: {
    uri: { type: "string" },
    folder: { type: "string", default: DIST },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
} else if (values.uri === undefined) {
  process.stderr.write(`error: --uri is missing\n\n${HELP}`);
  process.exitCode = 2;
} else {
  const { archive, manifest } = await releaseForKrew(`${DIST}/ironfence.js`, values.uri, values.folder);
  process.stdout.write(`${archive}\n${manifest}\n`);
}
