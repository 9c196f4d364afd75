import { mergeConfig } from "vite";
import headlamp from "./node_modules/@kinvolk/headlamp-plugin/config/vite.config.mjs";

/** Headlamp's own configuration. Its library names one module that its package does not bring; Node has the same. */
export default mergeConfig(headlamp, {
  resolve: { alias: [{ find: "unenv/node/process", replacement: "node:process" }] },
  test: { include: ["test/**/*.test.tsx"], testTimeout: 60_000 },
});
