import type { BareMetalRemediationStatus } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { InstalledHost } from "../../../../../src/remediator/machine/model/facts/reprovision.ts";
import type { Observations } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import type { SnapshotChanges } from "../snapshots.ts";
import type { Step } from "./situations.ts";
import { node, NOW, READ_ON, VERIFIED } from "../snapshots.ts";
import { AT, HOST, OFF, proven } from "./reprovision-fixtures.ts";

const INSTALLED: InstalledHost = {
  isGone: false,
  provisioningState: "provisioned",
  image: '{"image":{"url":"x"}}',
  consumer: undefined,
  externallyProvisioned: false,
  errorMessage: undefined,
  atMs: AT,
};

const EMPTY: InstalledHost = { ...INSTALLED, image: undefined, provisioningState: "available" };

function detached(): SnapshotChanges["other"] {
  const { host } = proven("BareMetalHost") ?? {};
  return host?.found === true ? { host: { found: true, facts: { ...host.facts, isPoweredByMark: false } } } : {};
}

function installing(
  state: "Verifying" | "Provisioning" | "Undoing",
  observations: Partial<Observations>,
  step?: NonNullable<BareMetalRemediationStatus["installation"]>["step"],
  more: {
    other?: SnapshotChanges["other"];
    strategy?: SnapshotChanges["strategy"];
    status?: BareMetalRemediationStatus;
  } = {},
): SnapshotChanges {
  return {
    state,
    attempt: { kind: "Reprovision" },
    strategy: { type: "Reprovision", via: "BareMetalHost", ...more.strategy },
    observations: {
      ...(state === "Verifying" ? { examined: { node: node() }, identity: VERIFIED } : OFF),
      ...observations,
    },
    status: {
      target: HOST,
      ...(step !== undefined && { installation: { step, image: INSTALLED.image ?? "" } }),
      ...more.status,
    },
    other: { ...proven("BareMetalHost"), ...more.other },
  };
}

/** The steps of a remediation that lets Metal3 reinstall its host. */
export const HOST_INSTALLATION_STEPS: readonly Step[] = [
  // BareMetalHost: refusals.
  {
    name: "a host that is not a BareMetalHost is not installed by Metal3",
    given: installing("Verifying", {}, undefined, { other: proven("FencingTarget") }),
    expected: "→ Undoing (HostNotInstallable)",
  },
  {
    name: "a host that its operator powers is not powered off for a network boot, which cannot be ordered there",
    given: { ...installing("Verifying", {}), strategy: { type: "Reprovision", via: "NetworkBoot" } },
    expected: "→ Undoing (HostNotInstallable)",
  },
  {
    name: "a BareMetalHost that its operator has detached boots from the network",
    given: {
      ...installing("Verifying", {}, undefined, { other: detached() }),
      strategy: { type: "Reprovision", via: "NetworkBoot" },
    },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "the installation of a host is read before the host is powered off for a reinstallation",
    given: installing("Verifying", {}),
    expected: "examineHost",
  },
  {
    name: "a host that a user uses is not reinstalled",
    given: installing("Verifying", { installed: { ...INSTALLED, consumer: "Metal3Machine m" } }),
    expected: "→ Undoing (HostNotInstallable)",
  },
  {
    name: "an externally provisioned host is not reinstalled",
    given: installing("Verifying", { installed: { ...INSTALLED, externallyProvisioned: true } }),
    expected: "→ Undoing (HostNotInstallable)",
  },
  {
    name: "a host without an image is not reinstalled",
    given: installing("Verifying", { installed: { ...INSTALLED, image: undefined } }),
    expected: "→ Undoing (HostNotInstallable)",
  },
  {
    name: "a control plane node is not reinstalled by Metal3 either",
    given: installing("Verifying", {
      installed: INSTALLED,
      examined: {
        node: { ...node(), metadata: { ...node().metadata, labels: { "node-role.kubernetes.io/control-plane": "" } } },
      },
    }),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "a host that may be reinstalled is powered off first",
    given: installing("Verifying", { installed: INSTALLED }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  // BareMetalHost: the installation.
  {
    name: "a host's image is not removed while the host is not proven off",
    given: installing("Provisioning", { installed: INSTALLED, power: READ_ON }, "Deprovisioning"),
    expected: "→ PoweringOff (PowerOffLost)",
  },
  {
    name: "a host's image is stored before it is removed",
    given: installing("Provisioning", { installed: INSTALLED }),
    expected: "stay (Deprovisioning)",
  },
  {
    name: "a host that a user began to use at the last moment is not touched",
    given: installing("Provisioning", { installed: { ...INSTALLED, consumer: "Metal3Machine m" } }),
    expected: "→ Undoing (HostNotInstallable)",
  },
  {
    name: "a host's image is removed once it is stored",
    given: installing("Provisioning", { installed: INSTALLED }, "Deprovisioning"),
    expected: "takeImageOff",
  },
  {
    name: "a host that was last read seconds ago is read again before its image is removed",
    given: installing("Provisioning", { installed: { ...INSTALLED, atMs: NOW.monotonicMs - 6_000 } }, "Deprovisioning"),
    expected: "examineHost",
  },
  {
    name: "an image that a user has changed since it was stored is stored again before it is removed",
    given: installing(
      "Provisioning",
      { installed: { ...INSTALLED, image: '{"image":{"url":"newer"}}' } },
      "Deprovisioning",
    ),
    expected: "stay (Deprovisioning)",
  },
  {
    name: "a restart while a host is deprovisioned needs no proof that it is off: Metal3 powers it",
    given: installing(
      "Provisioning",
      { installed: { ...EMPTY, provisioningState: "deprovisioning" }, power: READ_ON },
      "Deprovisioning",
    ),
    expected: "wait",
  },
  {
    name: "a host without an image and a system is provisioned next",
    given: installing("Provisioning", { installed: EMPTY }, "Deprovisioning"),
    expected: "stay (Provisioning)",
  },
  {
    name: "a host whose image was removed gets it back",
    given: installing("Provisioning", { installed: EMPTY }, "Provisioning"),
    expected: "putImageBack",
  },
  {
    name: "a host that has its image back is waited for",
    given: installing(
      "Provisioning",
      { installed: { ...INSTALLED, provisioningState: "provisioning" } },
      "Provisioning",
    ),
    expected: "wait",
  },
  {
    name: "a host that is provisioned is powered on",
    given: installing("Provisioning", { installed: INSTALLED }, "Provisioning"),
    expected: "→ PoweringOn (Provisioned)",
  },
  {
    name: "a host whose image is removed is still installed if the strategy is edited",
    given: installing("Provisioning", { installed: EMPTY }, "Provisioning", { strategy: { via: "NetworkBoot" } }),
    expected: "putImageBack",
  },
  {
    name: "a host that a user uses now is left to them",
    given: installing("Provisioning", { installed: { ...EMPTY, consumer: "Metal3Machine m" } }, "Deprovisioning"),
    expected: "→ Undoing (HostTaken)",
  },
  {
    name: "a host that is not provisioned in time gets no further attempt",
    given: installing(
      "Provisioning",
      { installed: { ...INSTALLED, provisioningState: "provisioning" } },
      "Provisioning",
      {
        other: { remainingMs: 0 },
      },
    ),
    expected: "→ Undoing (ProvisionTimeout)",
  },
  {
    name: "an undo puts a host's image back before anything else is done to the host",
    given: installing("Undoing", { installed: EMPTY }, "Deprovisioning"),
    expected: "putImageBack",
  },
  {
    name: "an undo reads whether a host's image is removed: the order to remove it may have been received",
    given: installing("Undoing", {}, "Deprovisioning"),
    expected: "examineHost",
  },
  {
    name: "an undo leaves alone a host that a user uses now",
    given: installing("Undoing", { installed: { ...EMPTY, consumer: "Metal3Machine m" } }, "Provisioning"),
    expected: "stay (ImageRestored)",
  },
];
