import assert from "node:assert/strict";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { NAMESPACE } from "./cluster.ts";
import type { World } from "./world.ts";

/** The duration of a call during which a hold begins. It is long enough for watches to show the hold. */
const CALL_MS = 2_000;

function maintain(world: World): void {
  const key = { namespace: NAMESPACE, name: "n1" };
  world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: true } });
}

/** Ways in which a hold of n1's power orders can begin during a call to one of its devices. */
export const HOLDS: Readonly<Record<string, (world: World) => Promise<void>>> = {
  "a pause begins": (world) => begin(world, () => world.pause(true)),
  "its maintenance begins": (world) => begin(world, () => maintain(world)),
};

async function begin(world: World, hold: () => void): Promise<void> {
  hold();
  await new Promise<void>((resolve) => void world.clock.schedule(CALL_MS, resolve));
}

/** Begins a hold while the power of n1 is read for an order whose intent is stored. */
export function holdDuringReading(world: World, hold: (world: World) => Promise<void>, isStored: () => boolean): void {
  let isHeld = false;
  world.faults.meanwhile.set("n1 readPower", async () => {
    if (isHeld || !isStored()) return;
    isHeld = true;
    await hold(world);
  });
}

/** Begins a hold while an outlet is identified for an order whose intent is stored. */
export function holdDuringIdentification(
  world: World,
  hold: (world: World) => Promise<void>,
  isStored: () => boolean,
): void {
  const { pdus } = world.devices;
  const open = pdus.open.bind(pdus);
  let isHeld = false;
  pdus.open = (...args): PowerDriver => {
    const driver = open(...args);
    const identifyOutlet: PowerDriver["identifyOutlet"] = async (signal) => {
      if (!isHeld && isStored()) {
        isHeld = true;
        await hold(world);
      }
      return driver.identifyOutlet?.(signal) ?? assert.fail("an outlet has no identity");
    };
    return { ...driver, identifyOutlet };
  };
}
