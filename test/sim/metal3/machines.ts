import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { KubeObject, ResourceType } from "../../../src/kube/resource.ts";
import { apiVersionOf } from "../../../src/kube/resource.ts";
import { childName } from "../../../src/remediator/requests/request.ts";
import type { Cluster } from "../cluster.ts";
import { machineOf } from "../okd-machines.ts";
import { METAL3, METAL3_MACHINES } from "./bare-metal-hosts.ts";

const MACHINES: ResourceType = {
  group: "cluster.x-k8s.io",
  version: "v1beta2",
  kind: "Machine",
  plural: "machines",
  namespaced: true,
};
export const METAL3_REMEDIATIONS: ResourceType = {
  ...METAL3_MACHINES,
  version: "v1beta2",
  kind: "Metal3Remediation",
  plural: "metal3remediations",
};

const TEMPLATES: ResourceType = {
  ...METAL3_REMEDIATIONS,
  kind: "Metal3RemediationTemplate",
  plural: "metal3remediationtemplates",
};
const HEALTH_CHECKS: ResourceType = { ...MACHINES, kind: "MachineHealthCheck", plural: "machinehealthchecks" };
const CLUSTERS: ResourceType = { ...MACHINES, kind: "Cluster", plural: "clusters" };
const CLUSTER = "c";
const LABELS = { "cluster.x-k8s.io/cluster-name": CLUSTER };

/** The fields of a Metal3Remediation that tests read. */
export interface Metal3Request extends KubeObject {
  status?: { phase?: string; retryCount?: number };
}

/** Machines m1, m2 and so on of Cluster API for nodes n1, n2 and so on, each on the BareMetalHost of that name. */
export class Metal3Machines {
  readonly #cluster: Cluster;
  #isChecked = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    const { server, rack } = cluster;
    cluster.serve("cluster.x-k8s.io");
    for (const { name: host, spec } of rack.hosts) {
      const key = { namespace: METAL3, name: machineOf(host) };
      const infrastructureRef = {
        apiGroup: METAL3_MACHINES.group,
        kind: METAL3_MACHINES.kind,
        name: `${host}-machine`,
      };
      cluster.create(
        MACHINES,
        { ...key, labels: LABELS },
        {
          spec: {
            clusterName: CLUSTER,
            providerID: spec.providerID,
            bootstrap: { dataSecretName: "b" },
            infrastructureRef,
          },
        },
      );
      server.collection(MACHINES).mergePatch(key, { status: { nodeRef: { name: host } } }, "status");
      const ownerReferences = [this.#owner(key.name)];
      const machine = { namespace: METAL3, name: infrastructureRef.name };
      server.collection(METAL3_MACHINES).mergePatch(machine, { metadata: { ownerReferences } });
    }
  }

  machine(name: string): KubeObject | undefined {
    return this.#cluster.server.collection(MACHINES).get({ namespace: METAL3, name });
  }

  request(name: string): Metal3Request | undefined {
    return this.#requests.get({ namespace: METAL3, name });
  }

  child(name: string): BareMetalRemediation | undefined {
    const children = this.#cluster.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values();
    return [...children].find(({ metadata }) => metadata.name.startsWith(`${name}-`));
  }

  /** Requests a remediation, as a health check of Cluster API does. */
  ask(name: string, strategy: Record<string, unknown> = {}): void {
    this.#cluster.create(
      METAL3_REMEDIATIONS,
      { namespace: METAL3, name, ownerReferences: [this.#owner(name)] },
      { spec: { strategy: { type: "Reboot", timeoutSeconds: 100, ...strategy } } },
    );
  }

  /**
   * Creates a health check over all Machines that creates a Metal3Remediation when a node has been unhealthy for 5 s.
   */
  createHealthCheck(): void {
    const template = { namespace: METAL3, name: "reboot" };
    const spec = { strategy: { type: "Reboot", timeoutSeconds: 100 } };
    this.#cluster.create(TEMPLATES, template, { spec: { template: { spec } } });
    const templateRef = { apiVersion: apiVersionOf(TEMPLATES), kind: TEMPLATES.kind, name: template.name };
    const unhealthy = ["False", "Unknown"].map((status) => ({ type: "Ready", status, timeoutSeconds: 5 }));
    this.#isChecked = true;
    this.#createCluster();
    this.#cluster.create(
      HEALTH_CHECKS,
      { namespace: METAL3, name: "check" },
      {
        spec: {
          clusterName: CLUSTER,
          selector: { matchLabels: LABELS },
          checks: { unhealthyNodeConditions: unhealthy },
          remediation: { templateRef },
        },
      },
    );
  }

  /** Creates the Cluster of the Machines in the ready state, for which a health check waits. */
  #createCluster(): void {
    const key = { namespace: METAL3, name: CLUSTER };
    const lastTransitionTime = "2026-01-01T00:00:00Z";
    const conditions = ["InfrastructureReady", "ControlPlaneInitialized"].map((type) => ({
      type,
      status: "True",
      reason: "Ready",
      message: "",
      lastTransitionTime,
    }));
    this.#cluster.create(CLUSTERS, key, { spec: { clusterNetwork: { apiServerPort: 6443 } } });
    this.#cluster.server.collection(CLUSTERS).mergePatch(key, { status: { conditions } }, "status");
  }

  withdraw(name: string): void {
    if (this.request(name) !== undefined) this.#requests.delete({ namespace: METAL3, name });
  }

  /**
   * What has not settled yet: a request that is being deleted or that a health check has for a Ready node, or a
   * remediation without its request.
   */
  unmet(): string[] {
    return this.#cluster.rack.hosts.flatMap(({ name: node }) => {
      const name = machineOf(node);
      const [request, child] = [this.request(name), this.child(name)];
      if (request?.metadata.deletionTimestamp !== undefined) return [`the request of Machine ${name} is being deleted`];
      if (this.#isChecked && request !== undefined && this.#cluster.isReady(node))
        return [`Machine ${name} has a request`];
      const isOrphan = child !== undefined && (request === undefined || child.metadata.name !== childName(request));
      return isOrphan ? [`Machine ${name} has a remediation that is not requested`] : [];
    });
  }

  #owner(machine: string): Record<string, unknown> {
    const { kind } = MACHINES;
    return { apiVersion: apiVersionOf(MACHINES), kind, name: machine, uid: this.machine(machine)?.metadata.uid };
  }

  get #requests() {
    return this.#cluster.server.collection<Metal3Request>(METAL3_REMEDIATIONS);
  }
}
