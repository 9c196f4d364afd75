import { BARE_METAL_HOST, BARE_METAL_POWER, BARE_METAL_SIM } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_BARE_METAL_HOST_MUTANTS: readonly Mutant[] = [
  mutant(
    "ended-hold-untold",
    "orphans/orphaned-holds",
    "a host that is kept off for a remediation that has ended is reported",
    "if (!isFinal(status?.phase)) atWork.add(",
    "if (status !== undefined) atWork.add(",
    BARE_METAL_SIM,
  ),
  mutant(
    "borrowed-uuid",
    "hosts/bare-metal-host/lookup/node-claims",
    "a host is powered off for neither of two Nodes with one system UUID",
    "return isSame ?",
    "return isSame && consumerRef === undefined ?",
    BARE_METAL_HOST,
  ),
  // BareMetalHosts: asked of their operator, never gone behind.
  mutant(
    "off-without-hold",
    "hosts/bare-metal-host/power/host-power",
    "the Off of a BareMetalHost counts only while our off request is on it",
    'const state = reading.state === "Off" ? "Changing" : reading.state;',
    "const { state } = reading;",
    BARE_METAL_POWER,
  ),
  mutant(
    "order-unverified-host",
    "hosts/bare-metal-host/power/host-power",
    "Metal3's operator gets no off request before the identity of the host was accepted",
    "await this.#reader.requireVerified(signal);",
    "",
    BARE_METAL_POWER,
  ),
  mutant(
    "ask-for-anothers-host",
    "hosts/bare-metal-host/store/host-store",
    "only the owner of a BareMetalHost asks its operator",
    "if (present?.uid === owner.uid) return;\n  const whose",
    'if (owner.uid !== "") return;\n  const whose',
    BARE_METAL_POWER,
  ),
  mutant(
    "release-keeps-hold",
    "hosts/bare-metal-host/store/host-store",
    "a remediation that gives a host up no longer keeps it off",
    "const withdrawn = asItIs ? {}",
    "const withdrawn = !asItIs ? {}",
    BARE_METAL_POWER,
  ),
  mutant(
    "provider-id-believed",
    "hosts/bare-metal-host/lookup/host-search",
    "a providerID alone does not assign a host to a machine if another machine uses it",
    "else this.#nameFor(consumers, host, way, isReportedByNode);",
    "else this.#nameFor([], host, way, isReportedByNode);",
    BARE_METAL_HOST,
  ),

  // A node of the same name in another cluster is another node; a Machine is known by its UID.
  mutant(
    "kubelet-claims-host",
    "hosts/bare-metal-host/lookup/host-search",
    "the providerID of a node leads to a host without a consumer only if an annotation of the host allows it",
    'if (isReportedByNode && host.consumerRef === undefined && host.metadata.annotations?.[ALLOW_PROVIDER_ID] !== "true") {',
    'if (host.metadata.name === "") {',
    BARE_METAL_HOST,
  ),
];
