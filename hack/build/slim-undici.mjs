// What the bundle has of undici. undici's own index loads fetch, WebSocket, caches and mocks as well, which no part of
// the agent uses. A name that is missing here fails the build.
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";
import api from "undici/lib/api/index.js";

Object.assign(Dispatcher.prototype, api);

export { default as buildConnector } from "undici/lib/core/connect.js";
export { default as errors } from "undici/lib/core/errors.js";
export { default as Client } from "undici/lib/dispatcher/client.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";

// client-node names them, and uses none of them to read a kubeconfig.
export const Agent = undefined;
export const ProxyAgent = undefined;
export const fetch = undefined;
