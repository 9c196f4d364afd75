import type { BmcErrorCode } from "../../../bmc/interface/errors.ts";
import { BmcError } from "../../../bmc/interface/errors.ts";
import type { DeviceProblem, Reason } from "../../machine/model/decision/reasons.ts";
import { HostRefusal, TargetError } from "./host.ts";

const BMC_PROBLEMS: Record<Exclude<BmcErrorCode, "Aborted">, { reason: Reason; final: boolean; nextStep: string }> = {
  Unreachable: {
    reason: "BMCUnreachable",
    final: false,
    nextStep: "check its power, its network and its address",
  },
  Timeout: { reason: "BMCTimeout", final: false, nextStep: "check its network, or reset the BMC" },
  Busy: { reason: "BMCBusy", final: false, nextStep: "wait until the BMC is ready" },
  Refused: { reason: "BMCRefused", final: false, nextStep: "check its event log" },
  BadResponse: {
    reason: "BMCBadResponse",
    final: false,
    nextStep: "check that the address is that of a BMC, or reset the BMC",
  },
  AuthFailed: {
    reason: "BMCAuthenticationFailed",
    final: true,
    nextStep: "correct the user name and password in the Secret of the FencingTarget or BareMetalHost",
  },
  TlsUntrusted: {
    reason: "BMCCertificateUntrusted",
    final: true,
    nextStep: "check spec.devices[].tls of the FencingTarget, or key ca.crt in the Secret of the BareMetalHost",
  },
  PrivilegeTooLow: {
    reason: "BMCPrivilegeTooLow",
    final: true,
    nextStep: "give the account the privilege to control power",
  },
  SystemNotFound: {
    reason: "BMCSystemNotFound",
    final: true,
    nextStep: "correct the System in the address of the device",
  },
  SystemAmbiguous: {
    reason: "BMCSystemAmbiguous",
    final: true,
    nextStep: "name the System in the address of the device",
  },
  Unsupported: { reason: "BMCUnsupported", final: true, nextStep: "the BMC cannot do this: use another strategy" },
};

/** What a failed call to a host's devices means; undefined for an error that is not about a device. */
export function deviceProblem(error: unknown): DeviceProblem | undefined {
  if (error instanceof TargetError || error instanceof HostRefusal)
    return { reason: error.reason, message: `[${error.reason}] ${error.message}`, final: false };
  if (!(error instanceof BmcError) || error.code === "Aborted") return undefined;
  const { reason, final, nextStep } = BMC_PROBLEMS[error.code];
  return { reason, message: `[${reason}] ${error.message}: ${nextStep}`, final };
}
