// The part of undici that is in the bundle. The index of undici would also load fetch, WebSocket, caches and mocks,
// which the agent does not use. The build fails if a name is missing here.
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";
import api from "undici/lib/api/index.js";

Object.assign(Dispatcher.prototype, api);

export { default as buildConnector } from "undici/lib/core/connect.js";
export { default as errors } from "undici/lib/core/errors.js";
export { default as Client } from "undici/lib/dispatcher/client.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";

// client-node imports these names, and needs none of them to read a kubeconfig.
export const Agent = undefined;
export const ProxyAgent = undefined;
export const fetch = undefined;
