// Replaces the generated client of client-node in the bundle. Only makeApiClient needs that client; reading a
// kubeconfig does not.
export const createConfiguration = undefined;
export const ServerConfiguration = undefined;
