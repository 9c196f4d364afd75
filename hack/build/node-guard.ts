/**
 * The first statement of the bundle: an older Node gets one clear line instead of the crash of some dependency.
 * It is JavaScript that every Node reads.
 */
export const NODE_GUARD =
  'if(Number(process.versions.node.split(".")[0])<24){' +
  'process.stderr.write("ironfence: needs Node 24 or newer, and this is "+process.version+"\\n");process.exit(1)}';
