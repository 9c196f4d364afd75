import { ALLOWED_ADDRESSES } from "../../../../api/names/annotations.ts";
import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import { BMC_SECRET_LABEL, BMC_SECRET_VALUE } from "../../../../api/metal3/metal3.ts";
import type { PowerDriver } from "../../../../bmc/interface/driver.ts";
import { DEFAULT_DEVICE_TIMEOUTS } from "../../../../bmc/interface/driver.ts";
import { BmcError } from "../../../../bmc/interface/errors.ts";
import type { OpenDevice } from "../../../../bmc/interface/device-config.ts";
import { isKubeError } from "../../../../kube/errors.ts";
import type { KubeRuntime } from "../../../../kube/runtime.ts";
import { readSecret } from "../../../../kube/objects/secret-reader.ts";
import type { StoredSecret } from "../../../../kube/objects/secret-reader.ts";
import type { Secret } from "../../../../runtime/secret.ts";
import { isAllowed, originText } from "../../model/allowed-addresses.ts";
import { TargetError } from "../../model/host.ts";
import { hostText } from "../store/power-path.ts";

export interface HostDeviceDeps {
  runtime: KubeRuntime;
  openDevice: OpenDevice;
}

/**
 * Creates the driver for the BMC in the spec of a host, with credentials that are read live from a Secret in the
 * namespace of the host: the keys `username` and `password`, and our own key `ca.crt` if the certificate of the BMC has
 * a private authority.
 *
 * @throws TargetError if spec or Secret do not allow it, KubeError if the Secret cannot be read for another reason.
 */
export async function openHostDevice(
  { runtime, openDevice }: HostDeviceDeps,
  host: BareMetalHost,
  signal: AbortSignal,
): Promise<PowerDriver> {
  const { address, credentialsName, disableCertificateVerification } = host.bmc;
  const text = hostText(host);
  if (address === undefined) throw new TargetError("AddressInvalid", `${text} has no spec.bmc.address`);
  if (credentialsName === undefined) throw new TargetError("SecretNotFound", `${text} has no spec.bmc.credentialsName`);
  const name = `Secret ${host.metadata.namespace}/${credentialsName}, spec.bmc.credentialsName of ${text},`;
  const secret = await requireSecret(runtime, host.metadata.namespace, credentialsName, name, signal);
  const allowed = secret.annotations[ALLOWED_ADDRESSES];
  if (allowed !== undefined && !isAllowed(allowed, address)) {
    const message = `${name} may not be sent to ${originText(address) ?? "that address"}: if the address is correct, add it to the annotation ${ALLOWED_ADDRESSES}`;
    throw new TargetError("AddressNotAllowed", message);
  }
  // The operator labels each Secret that it uses for a BMC. Other Secrets are not used for one here either.
  if (allowed === undefined && secret.labels[BMC_SECRET_LABEL] !== BMC_SECRET_VALUE) {
    const message = `${name} does not have the label ${BMC_SECRET_LABEL}=${BMC_SECRET_VALUE}, so the operator of the host has not used it for a BMC yet`;
    throw new TargetError("AddressNotAllowed", message);
  }
  const valueOf = (key: string): Secret => {
    const value = secret.value(key);
    if (value !== undefined) return value;
    throw new TargetError("SecretInvalid", `${name} has no key ${key}, or an empty one: add it`);
  };
  const ca = secret.value("ca.crt")?.reveal();
  const config = {
    address,
    username: valueOf("username").reveal(),
    password: valueOf("password"),
    tls: { insecureSkipVerify: disableCertificateVerification, ...(ca !== undefined && { ca }) },
    timeouts: DEFAULT_DEVICE_TIMEOUTS,
  };
  try {
    return openDevice(config, { clock: runtime.clock, logger: runtime.logger });
  } catch (error) {
    if (!(error instanceof BmcError)) throw error;
    const reason = error.code === "TlsUntrusted" ? "SecretInvalid" : "AddressInvalid";
    throw new TargetError(reason, `the BMC of ${text} cannot be used: ${error.message}`, { cause: error });
  }
}

async function requireSecret(
  runtime: KubeRuntime,
  namespace: string,
  secretName: string,
  text: string,
  signal: AbortSignal,
): Promise<StoredSecret> {
  try {
    const secret = await readSecret(runtime.client, { namespace, name: secretName }, signal);
    if (secret !== undefined) return secret;
    throw new TargetError("SecretNotFound", `${text} does not exist: create it with keys username and password`);
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    const message = `${text} cannot be read: give the service account of ironfence permission to get Secrets in namespace ${namespace}`;
    throw new TargetError("SecretInvalid", message, { cause: error });
  }
}
