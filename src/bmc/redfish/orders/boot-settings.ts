import { failure } from "../http/answer.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import {
  bootMode,
  bootPatches,
  hasBoot,
  ifMatch,
  lacksNetworkBoot,
  parseBootOverride,
  settingsReference,
} from "./boot.ts";
import type { JsonObject } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { RefusalWatch } from "./refusal-watch.ts";
import type { Resource, Service } from "../session/service.ts";
import type { BootOverride } from "../../interface/driver.ts";
import { BmcError } from "../../interface/errors.ts";

/** What the boot settings need from their driver. */
export interface BootSettingsDeps {
  /** For error messages. */
  address: string;
  service: Service;
  refusals: RefusalWatch;
  readSystem: (signal: AbortSignal) => Promise<Resource>;
  /** Sends a change, unless another host answers. */
  change: (call: Parameters<Service["change"]>[0], signal: AbortSignal) => Promise<RedfishAnswer>;
}

/** Reads and writes the boot override of one System. */
export class BootSettings {
  readonly #deps: BootSettingsDeps;

  constructor(deps: BootSettingsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the resource whose Boot object accepts writes: the settings object if that has one, otherwise the System.
   */
  async find(signal: AbortSignal): Promise<Resource | undefined> {
    const { service } = this.#deps;
    const system = await this.#deps.readSystem(signal);
    const reference = settingsReference(system.body);
    if (reference !== undefined) {
      const path = pathOnOrigin(service.origin, reference, "the link to the settings");
      const settings = await service.find(path, signal);
      if (settings !== undefined && hasBoot(settings.body)) return settings;
    }
    return hasBoot(system.body) ? system : undefined;
  }

  async readOverride(signal: AbortSignal): Promise<BootOverride> {
    return parseBootOverride((await this.#read(signal)).body);
  }

  async setOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    const boot = await this.#read(signal);
    if (override === "None" && parseBootOverride(boot.body) === "None") return;
    if (override === "NetworkOnce" && lacksNetworkBoot(boot.body)) {
      throw new BmcError("Unsupported", `${this.#deps.address}: the BMC offers no network boot`);
    }
    const patches = bootPatches(override, boot.body);
    let refusal: BmcError | undefined;
    for (const patch of patches) {
      refusal = await this.#write(patch, boot, signal);
      if (refusal?.code !== "Refused" && refusal?.code !== "Unsupported") break;
    }
    if (refusal !== undefined) throw refusal;
    // Some BMCs (Supermicro) change to their default mode when the target changes. The mode is then written as well.
    const withMode = patches.at(-1);
    if (override === "None" || withMode === undefined || bootMode(boot.body) === undefined) return;
    const written = await this.#read(signal);
    if (bootMode(written.body) === bootMode(boot.body)) return;
    refusal = await this.#write(withMode, written, signal);
    if (refusal !== undefined) throw refusal;
  }

  async #read(signal: AbortSignal): Promise<Resource> {
    const boot = await this.find(signal);
    if (boot === undefined) throw new BmcError("Unsupported", `${this.#deps.address}: the System has no boot override`);
    return boot;
  }

  async #write(patch: JsonObject, read: Resource, signal: AbortSignal): Promise<BmcError | undefined> {
    const what = `${this.#deps.address}: boot override`;
    let { path, etag } = read;
    for (let tries = 1; ; tries += 1) {
      const precondition = ifMatch(etag, tries);
      const headers = precondition === undefined ? {} : { "if-match": precondition };
      const answer = await this.#deps.change({ method: "PATCH", path, body: patch, headers }, signal);
      const isUnmet = answer.status === 412 || answer.status === 428;
      if (!isUnmet) return this.#deps.refusals.refusalOf(what, answer, signal);
      if (precondition === "*") throw failure(what, answer);
      // Another client may have changed the resource between the read and the write.
      ({ path, etag } = await this.#read(signal));
    }
  }
}
