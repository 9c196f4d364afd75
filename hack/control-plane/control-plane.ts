import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/runtime/system.ts";
import { KubeApi } from "../lib/kube-api.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import type { CertificateAuthority } from "../lib/pki.ts";
import { freePorts } from "../lib/ports.ts";
import { startChild, tail } from "../lib/processes.ts";
import type { Child } from "../lib/processes.ts";
import { auditArguments } from "./audit.ts";
import { prepareBinaries } from "./binaries.ts";
import type { Binaries, Program, Progress } from "./binaries.ts";
import type { ApiAddress } from "./kubeconfig.ts";
import { writeKubeconfig } from "./kubeconfig.ts";

const READY_TIMEOUT_MS = 60_000;
const READY_POLL_MS = 100;
const TOKEN_SECONDS = 6 * 3_600;

/** The controllers that fencing needs. The others would only use CPU. */
const CONTROLLERS = [
  "node-lifecycle-controller",
  "taint-eviction-controller",
  "pod-garbage-collector-controller",
  "persistentvolume-attach-detach-controller",
  "persistentvolume-binder-controller",
  "garbage-collector-controller",
  "statefulset-controller",
  "deployment-controller",
  "replicaset-controller",
  "daemonset-controller",
  "job-controller",
  "disruption-controller",
  "namespace-controller",
  "serviceaccount-controller",
  "clusterrole-aggregation-controller",
];

/** How long a restarted API server may take to be ready. */
const RESTART_TIMEOUT_MS = 60_000;
/**
 * If the grace period is at least this long, nodes use leases of 40 s with a renewal every 10 s: at least two renewals
 * are missed before a node is Unknown.
 */
const STOCK_LEASES_GRACE_MS = 20_000;

export interface ControlPlaneOptions {
  progress: Progress;
  /**
   * How long a node's Lease may be unchanged before the node is Ready=Unknown. The default of Kubernetes is 50 s. A
   * shorter time makes tests faster.
   */
  nodeMonitorGracePeriodMs: number;
}

/** A kwok process, which simulates the kubelets of fake nodes. */
export interface Kwok {
  /** Ends it at once, without a last message to the API server, like a host that loses power or hangs. */
  kill(): Promise<void>;
}

/** A running control plane: etcd, API server, controller manager and scheduler on free loopback ports. */
export interface ControlPlane {
  /** Kubeconfig of a cluster administrator. */
  readonly kubeconfig: string;
  /** The address of etcd, for operations that the API server does not offer, such as compaction. */
  readonly etcdUrl: string;
  /** The folder of kubeconfigs, certificates and logs. `stop` removes it. */
  readonly folder: string;
  /** A client with the administrator's permissions. */
  readonly api: KubeApi;
  /** Rejects as soon as any of its programs ends by itself. */
  readonly failed: Promise<never>;
  /** The address of the API server. */
  readonly address: ApiAddress;
  /**
   * Writes a kubeconfig with a real token of a ServiceAccount, so that RBAC applies to its requests.
   *
   * @param via a way to the API server other than its own address, such as a proxy.
   */
  serviceAccountKubeconfig(namespace: string, name: string, via?: ApiAddress): Promise<string>;
  /** Writes a kubeconfig with the credentials of the kubelet of a node. The Node need not exist. */
  nodeKubeconfig(node: string): Promise<string>;
  /** Starts a kwok for one node or, without a name, for every node annotated `kwok.x-k8s.io/node: fake`. */
  startKwok(node?: string): Promise<Kwok>;
  /** Kills the API server, as if its machine had failed; everything else runs on. */
  killApiServer(): Promise<void>;
  /** Starts the API server again at the same address, and waits until it is ready. */
  restartApiServer(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a control plane. Several may run at the same time. */
export async function startControlPlane(options: ControlPlaneOptions, signal: AbortSignal): Promise<ControlPlane> {
  const binaries = await prepareBinaries(options.progress, signal);
  const folder = await mkdtemp(join(tmpdir(), "ironfence-control-plane-"));
  const children: Child[] = [];
  try {
    return await start(options, binaries, folder, children, signal);
  } catch (error) {
    await stopAll(children, folder);
    throw error;
  }
}

async function stopAll(children: readonly Child[], folder: string): Promise<void> {
  // Stops the last one first, so that no program logs errors about a server that has ended.
  for (const child of [...children].reverse()) await child.stop();
  await rm(folder, { recursive: true, force: true });
}

async function start(
  options: ControlPlaneOptions,
  binaries: Binaries,
  folder: string,
  children: Child[],
  signal: AbortSignal,
): Promise<ControlPlane> {
  const startedMs = performance.now();
  const [apiPort = 0, etcdPort = 0, etcdPeerPort = 0, schedulerPort = 0] = await freePorts(4);
  const pki = await writePki(folder);
  const address = { server: `https://127.0.0.1:${apiPort}`, caPem: pki.ca.certPem };
  const kubeconfig = async (name: string, user: string, groups: readonly string[] = []): Promise<string> => {
    const path = join(folder, `${name}.kubeconfig`);
    const certificate = await pki.ca.issue({ commonName: user, organizations: groups, usage: "client" });
    await writeKubeconfig(path, address, certificate);
    return path;
  };
  const admin = await kubeconfig("admin", "admin", ["system:masters"]);

  const stopping = new AbortController();
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<never>((_resolve, reject) => (fail = reject));
  failed.catch(() => undefined);
  const expectedEnds = new Set<Child>();
  const launch = (program: Program, args: readonly string[], name: string = program): Child => {
    const child = startChild(name, binaries.path(program), args, { logFile: join(folder, `${name}.log`) });
    children.push(child);
    void child.ended.then((message) => {
      if (!stopping.signal.aborted && !expectedEnds.has(child)) fail(new Error(message));
      return undefined;
    });
    return child;
  };

  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const peerUrl = `http://127.0.0.1:${etcdPeerPort}`;
  launch("etcd", [
    `--data-dir=${join(folder, "etcd")}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    "--unsafe-no-fsync",
    "--log-level=warn",
  ]);
  const apiServerArguments = [
    `--etcd-servers=${etcdUrl}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${apiPort}`,
    `--cert-dir=${folder}`,
    `--tls-cert-file=${pki.file("apiserver.crt")}`,
    `--tls-private-key-file=${pki.file("apiserver.key")}`,
    `--client-ca-file=${pki.file("ca.crt")}`,
    `--service-account-key-file=${pki.file("service-account.crt")}`,
    `--service-account-signing-key-file=${pki.file("service-account.key")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    "--authorization-mode=Node,RBAC",
    // As kubeadm does.
    "--enable-admission-plugins=NodeRestriction",
    // Pods of fake nodes mount no tokens.
    "--disable-admission-plugins=ServiceAccount",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--endpoint-reconciler-type=none",
    "--allow-privileged",
    ...(await auditArguments(folder)),
  ];
  let apiServer = launch("kube-apiserver", apiServerArguments);
  const api = await KubeApi.fromKubeconfig(admin);
  await Promise.race([waitUntilReady(api, children, signal), failed]);

  launch("kube-controller-manager", [
    `--kubeconfig=${await kubeconfig("controller-manager", "system:kube-controller-manager")}`,
    `--controllers=${CONTROLLERS.join(",")}`,
    "--leader-elect=false",
    "--secure-port=0",
    "--use-service-account-credentials=true",
    `--node-monitor-period=${options.nodeMonitorGracePeriodMs < 10_000 ? "500ms" : "5s"}`,
    `--node-monitor-grace-period=${options.nodeMonitorGracePeriodMs}ms`,
    `--root-ca-file=${pki.file("ca.crt")}`,
    `--service-account-private-key-file=${pki.file("service-account.key")}`,
    "--kube-api-qps=200",
    "--kube-api-burst=400",
  ]);
  launch("kube-scheduler", [
    `--kubeconfig=${await kubeconfig("scheduler", "system:kube-scheduler")}`,
    "--leader-elect=false",
    "--bind-address=127.0.0.1",
    `--secure-port=${schedulerPort}`,
    `--cert-dir=${folder}`,
  ]);
  options.progress(
    `control plane is up at ${address.server} after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`,
  );

  let kwoks = 0;
  return {
    kubeconfig: admin,
    etcdUrl,
    folder,
    api,
    failed,
    address,
    serviceAccountKubeconfig: async (namespace, name, via = address) => {
      const path = join(folder, `${namespace}-${name}.kubeconfig`);
      await writeKubeconfig(path, via, { token: await requestToken(api, namespace, name) });
      return path;
    },
    nodeKubeconfig: (node) => kubeconfig(`kubelet-${node}`, `system:node:${node}`, ["system:nodes"]),
    startKwok: async (node) => {
      kwoks += 1;
      const leaseSeconds = leaseSecondsOf(node, options.nodeMonitorGracePeriodMs);
      const args = kwokArguments(node, { kubeconfig: admin, stages: binaries.kwokStages, leaseSeconds });
      const kwok = launch("kwok", args, `kwok-${node ?? "all"}-${kwoks}`);
      return {
        kill: async () => {
          expectedEnds.add(kwok);
          kwok.kill("SIGKILL");
          await kwok.ended;
        },
      };
    },
    killApiServer: async () => {
      expectedEnds.add(apiServer);
      apiServer.kill("SIGKILL");
      await apiServer.ended;
    },
    restartApiServer: async () => {
      apiServer = launch("kube-apiserver", apiServerArguments);
      await Promise.race([waitUntilReady(api, [apiServer], AbortSignal.timeout(RESTART_TIMEOUT_MS)), failed]);
    },
    stop: async () => {
      stopping.abort();
      await api.close();
      await stopAll(children, folder);
    },
  };
}

/** The command line of the kwok of one node or, without a name, of every node annotated `kwok.x-k8s.io/node: fake`. */
export function kwokArguments(
  node: string | undefined,
  { kubeconfig, stages, leaseSeconds }: { kubeconfig: string; stages: string; leaseSeconds: number },
): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--config=${stages}`,
    node === undefined
      ? "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"
      : `--manage-single-node=${node}`,
    `--node-lease-duration-seconds=${leaseSeconds}`,
  ];
}

/**
 * By default nodes renew a lease of 40 s every 10 s. That saves CPU with many fake nodes. A test that kills a single
 * node mostly uses a short grace period. The lease must then expire within that period, as 40 s do within the default
 * of 50 s.
 */
function leaseSecondsOf(node: string | undefined, graceMs: number): number {
  return node === undefined || graceMs >= STOCK_LEASES_GRACE_MS ? 40 : 4;
}

async function writePki(folder: string): Promise<{ ca: CertificateAuthority; file(name: string): string }> {
  const file = (name: string): string => join(folder, "pki", name);
  await mkdir(join(folder, "pki"));
  const ca = await createCertificateAuthority(systemClock, "ironfence control plane");
  const server = await ca.issue({
    commonName: "kube-apiserver",
    dnsNames: ["localhost", "kubernetes.default.svc"],
    ipAddresses: ["127.0.0.1", "10.0.0.1"],
    usage: "server",
  });
  const serviceAccount = await ca.issue({ commonName: "service-accounts", usage: "server" });
  await writeFile(file("ca.crt"), ca.certPem);
  await writeFile(file("apiserver.crt"), server.certPem);
  await writeFile(file("apiserver.key"), server.keyPem, { mode: 0o600 });
  await writeFile(file("service-account.crt"), serviceAccount.certPem);
  await writeFile(file("service-account.key"), serviceAccount.keyPem, { mode: 0o600 });
  return { ca, file };
}

async function waitUntilReady(api: KubeApi, children: readonly Child[], signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  let last: unknown;
  while (performance.now() < deadlineMs) {
    signal.throwIfAborted();
    try {
      await api.send("GET", "/readyz");
      return;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
  }
  const logs = children.map((child) => `${child.logFile}:\n${tail(child.logFile)}`);
  throw new Error(
    [`the API server was not ready within ${READY_TIMEOUT_MS / 1000} s (${String(last)})`, ...logs].join("\n"),
  );
}

async function requestToken(api: KubeApi, namespace: string, name: string): Promise<string> {
  const answer = (await api.create(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: TOKEN_SECONDS },
  })) as { status: { token: string } };
  return answer.status.token;
}
