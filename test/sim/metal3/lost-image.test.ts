import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { REMOVED_IMAGE } from "../../../src/api/names/annotations.ts";
import { fieldAt } from "../../../src/api/schema/read-fields.ts";
import { BARE_METAL_HOSTS } from "../../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { METAL3, Metal3World } from "./world.ts";

function imageOf(world: Metal3World): unknown {
  const host = world.server.collection(BARE_METAL_HOSTS).get({ namespace: METAL3, name: "n1" });
  return fieldAt(host, "spec", "image");
}

/** Reprovisions a host until its image is removed, then removes its remediation by force. */
async function lose(world: Metal3World, killed: boolean): Promise<unknown> {
  world.edit({ spec: { consumerRef: null } });
  const before = imageOf(world);
  await world.hang();
  world.remediate("n1", { type: "Reprovision", via: "BareMetalHost", requireReboot: false });
  await world.until("the image is off", () => imageOf(world) === undefined);
  if (killed) await world.killAgent();
  world.abort();
  world.dropFinalizers();
  return before;
}

const lost = (world: Metal3World): string[] =>
  world.notes.flatMap(({ reason, note }) => (reason === "RemediationLost" && note.includes("image") ? [note] : []));

describe("the image that a remediation has removed before it was deleted by force", () => {
  for (const killed of [false, true]) {
    it(`the image that a lost remediation has removed is restored${killed ? " by the next agent" : ""}, and that is reported`, () =>
      Metal3World.run({}, async (world) => {
        const before = await lose(world, killed);
        if (killed) world.startAgent();
        await world.until("the image is back", () => imageOf(world) !== undefined, 30_000);
        assert.deepEqual(imageOf(world), before);
        await world.clock.advance(5_000);
        assert.equal(lost(world).length, 1);
        assert.match(lost(world)[0] ?? "", /it is restored; the image: \{"image":/u);
        assert.equal(world.bmh().metadata.annotations?.[REMOVED_IMAGE], undefined);
      }));
  }

  it("the image that a lost remediation has removed is not restored on a host that is in use again: the Event names it, and how to restore it", () =>
    Metal3World.run({}, async (world) => {
      await lose(world, true);
      world.edit({ spec: { consumerRef: { kind: "Metal3Machine", name: "other", namespace: METAL3 } } });
      world.startAgent();
      await world.clock.advance(60_000);
      assert.equal(imageOf(world), undefined);
      assert.equal(lost(world).length, 1);
      assert.match(
        lost(world)[0] ?? "",
        /not restored, because Metal3Machine other uses the host.*kubectl -n \S+ patch/u,
      );
    }));

  it("the image that a lost remediation has removed is noted on the host only until it is restored", () =>
    Metal3World.run({}, async (world) => {
      world.edit({ spec: { consumerRef: null } });
      await world.hang();
      world.remediate("n1", { type: "Reprovision", via: "BareMetalHost", requireReboot: false });
      await world.until("the image is off", () => imageOf(world) === undefined);
      assert.notEqual(world.bmh().metadata.annotations?.[REMOVED_IMAGE], undefined);
      await world.until("the image is back", () => imageOf(world) !== undefined, 3_600_000);
      assert.equal(world.bmh().metadata.annotations?.[REMOVED_IMAGE], undefined);
    }));
});
