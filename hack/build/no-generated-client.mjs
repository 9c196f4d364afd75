// In the place of client-node's generated client. A kubeconfig is read without it: only makeApiClient needs it.
export const createConfiguration = undefined;
export const ServerConfiguration = undefined;
