import { ALLOWED_ADDRESSES } from "../../../api/annotations.ts";
import { SECRETS } from "../../../api/core-types.ts";
import type { SecretObject } from "../../../api/core.ts";
import type { BareMetalHost } from "../../../api/metal3.ts";
import { BMC_SECRET_LABEL, BMC_SECRET_VALUE } from "../../../api/metal3.ts";
import type { PowerDriver } from "../../../bmc/driver.ts";
import { DEFAULT_DEVICE_TIMEOUTS } from "../../../bmc/driver.ts";
import { BmcError } from "../../../bmc/errors.ts";
import type { openDevice } from "../../../bmc/open-device.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { Secret } from "../../../runtime/secret.ts";
import { isAllowed, originText } from "../allowed-addresses.ts";
import { decodeValue } from "../devices.ts";
import { TargetError } from "../host.ts";
import { hostText } from "./power-path.ts";

export interface HostDeviceDeps {
  runtime: KubeRuntime;
  openDevice: typeof openDevice;
}

/**
 * Makes the driver for a host's BMC as its spec describes it, with the credentials read live from the Secret of the host's own
 * namespace: keys `username` and `password`, and ours, `ca.crt`, where the BMC's certificate has an authority of its own.
 *
 * @throws TargetError where that does not allow it; KubeError where the Secret cannot be read for another reason.
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
  const { data = {}, metadata } = await readSecret(runtime, host.metadata.namespace, credentialsName, name, signal);
  const allowed = metadata.annotations?.[ALLOWED_ADDRESSES];
  if (allowed !== undefined && !isAllowed(allowed, address)) {
    const message = `${name} does not allow to be sent to ${originText(address) ?? "that address"}: add it to annotation ${ALLOWED_ADDRESSES} if that is right`;
    throw new TargetError("AddressNotAllowed", message);
  }
  // Its operator labels each Secret that it uses for a BMC; what it has not taken for one is nobody's password here.
  if (allowed === undefined && metadata.labels?.[BMC_SECRET_LABEL] !== BMC_SECRET_VALUE) {
    const message = `${name} is not labelled ${BMC_SECRET_LABEL}=${BMC_SECRET_VALUE}, so the host's operator has not used it for a BMC yet`;
    throw new TargetError("AddressNotAllowed", message);
  }
  const valueOf = (key: string): Secret => {
    const value = decodeValue(data[key]);
    if (value === undefined)
      throw new TargetError("SecretInvalid", `${name} has no key ${key}, or an empty one: add it`);
    return new Secret(value);
  };
  const ca = decodeValue(data["ca.crt"]);
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

async function readSecret(
  runtime: KubeRuntime,
  namespace: string,
  secretName: string,
  text: string,
  signal: AbortSignal,
): Promise<SecretObject> {
  try {
    return await runtime.client.get<SecretObject>(SECRETS, { namespace, name: secretName }, signal);
  } catch (error) {
    if (isKubeError(error, "NotFound")) {
      throw new TargetError("SecretNotFound", `${text} does not exist: create it with keys username and password`);
    }
    if (!isKubeError(error, "Forbidden")) throw error;
    const message = `${text} may not be read: give ironfence's service account permission to get Secrets in namespace ${namespace}`;
    throw new TargetError("SecretInvalid", message, { cause: error });
  }
}
