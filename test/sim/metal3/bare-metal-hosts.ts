import type { BareMetalHostOperator, OperatorOptions } from "../../../hack/rack/bare-metal-host-operator.ts";
import { startBareMetalHostOperator } from "../../../hack/rack/bare-metal-host-operator.ts";
import { PROVISIONED_STATUS } from "../../../hack/rack/bare-metal-host-status.ts";
import type { HostSpec } from "../../../hack/rack/host.ts";
import { NAMESPACES } from "../../../hack/kube-mock/controllers/cluster-types.ts";
import { SECRETS } from "../../../src/api/kubernetes/core-types.ts";
import type { BareMetalHost } from "../../../src/api/metal3/metal3.ts";
import { BMC_SECRET_LABEL, BMC_SECRET_VALUE, readBareMetalHost } from "../../../src/api/metal3/metal3.ts";
import { createKubeClient } from "../../../src/kube/api-client/api-client.ts";
import type { ResourceType } from "../../../src/kube/resource.ts";
import { BARE_METAL_HOSTS } from "../../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import type { Cluster } from "../cluster.ts";
import { kubeletClient } from "../kubelet-client.ts";

/** The namespace of BareMetalHosts, Metal3Machines and the Secrets of BMCs. It differs from the agent's own. */
export const METAL3 = "metal3";

export const METAL3_MACHINES: ResourceType = {
  group: "infrastructure.cluster.x-k8s.io",
  version: "v1beta1",
  kind: "Metal3Machine",
  plural: "metal3machines",
  namespaced: true,
};

export interface BareMetalHostsOptions {
  operator?: OperatorOptions;
  /** Whether a Metal3Machine uses each host: true by default. */
  used?: boolean;
}

/** A host of a cluster with BareMetalHosts. The providerID of its Node names its BareMetalHost. */
export function providedHost(name: string): HostSpec & { providerID: string } {
  return { name, providerID: `metal3://${METAL3}/${name}/${name}-machine` };
}

/** A BareMetalHost for each host of a cluster, and their running operator. */
export class BareMetalHosts {
  readonly operator: BareMetalHostOperator;
  readonly #cluster: Cluster;
  readonly #stop = new AbortController();

  constructor(cluster: Cluster, { operator = {}, used = true }: BareMetalHostsOptions) {
    this.#cluster = cluster;
    const { clock, rack, server } = cluster;
    for (const group of ["metal3.io", "infrastructure.cluster.x-k8s.io"]) cluster.serve(group);
    cluster.create(NAMESPACES, { name: METAL3 }, {});
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    const data = { username: base64("admin"), password: base64(cluster.faults.password) };
    cluster.create(
      SECRETS,
      { namespace: METAL3, name: "bmc", labels: { [BMC_SECRET_LABEL]: BMC_SECRET_VALUE } },
      { data },
    );
    for (const { name, spec } of rack.hosts) this.#describe(name, spec.serialNumber, used);
    const client = createKubeClient({
      transport: server.transport({ client: "operator" }),
      clock,
      random: seededRandom(7),
    });
    this.operator = startBareMetalHostOperator(
      {
        client: { ...kubeletClient(server, clock), patch: (...call) => client.patch(...call) },
        clock,
        logger: createLogger("silent"),
        rack,
      },
      operator,
      this.#stop.signal,
    );
  }

  get(name: string): BareMetalHost | undefined {
    const found = this.#cluster.server.collection(BARE_METAL_HOSTS).get({ namespace: METAL3, name });
    return found && readBareMetalHost(found);
  }

  /** Changes a host with a merge patch of the whole object or of its status. */
  edit(name: string, patch: Record<string, unknown>, subresource?: "status"): void {
    this.#cluster.server.collection(BARE_METAL_HOSTS).mergePatch({ namespace: METAL3, name }, patch, subresource);
  }

  /** Ends the operator. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#cluster.clock.advance(0);
    await this.operator.settled;
  }

  #describe(name: string, serialNumber: string, used: boolean): void {
    const cluster = this.#cluster;
    const consumer = { namespace: METAL3, name: `${name}-machine` };
    const apiVersion = `${METAL3_MACHINES.group}/${METAL3_MACHINES.version}`;
    if (used) {
      const annotations = { "metal3.io/BareMetalHost": `${METAL3}/${name}` };
      cluster.create(METAL3_MACHINES, { ...consumer, annotations }, { spec: {} });
    }
    cluster.create(
      BARE_METAL_HOSTS,
      { namespace: METAL3, name },
      {
        spec: {
          online: true,
          bmc: { address: `redfish://${name}`, credentialsName: "bmc" },
          image: { url: "http://image" },
          ...(used && { consumerRef: { apiVersion, kind: METAL3_MACHINES.kind, ...consumer } }),
        },
      },
    );
    const status = {
      ...PROVISIONED_STATUS,
      lastUpdated: "2026-01-01T00:00:00Z",
      hardware: { systemVendor: { serialNumber } },
    };
    this.edit(name, { status }, "status");
  }
}
