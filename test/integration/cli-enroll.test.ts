import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { NAMESPACE } from "../../hack/demo/objects.ts";
import { startWorld } from "../../hack/demo/world.ts";
import type { World } from "../../hack/demo/world.ts";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES, PODS, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { Pod } from "../../src/api/kubernetes/core.ts";
import { EXIT_REFUSED, EXIT_USAGE } from "../../src/cli/errors/failures.ts";
import type { CliOptions, CliResult } from "./cli-fixture.ts";
import { cli } from "./cli-fixture.ts";
import type { SnmpWorld } from "./snmp-fixture.ts";
import { PASSWORD, PRIV_PASSWORD, SERIAL, startSnmpWorld, USER } from "./snmp-fixture.ts";

// Runs `ironfence enroll` until it switches the first outlet, with an API server over HTTPS and a PDU over SNMP.
// test/sim/enroll.test.ts has what follows.

const KEY = { namespace: NAMESPACE, name: "node-4" };
const base64 = (text: string): string => Buffer.from(text).toString("base64");

describe("ironfence enroll", () => {
  let folder: string;
  let world: World;
  let pdu: SnmpWorld;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-enroll-"));
    world = await startWorld(folder);
    pdu = await startSnmpWorld();
    world.server.collection(SECRETS).create({
      metadata: { namespace: NAMESPACE, name: "pdu", annotations: { [ALLOWED_ADDRESSES]: pdu.mock.address } },
      data: { username: base64(USER), password: base64(PASSWORD), privPassword: base64(PRIV_PASSWORD) },
    });
    const targets = world.server.collection<FencingTarget>(FENCING_TARGETS);
    const devices = [1, 2].map((number) => ({
      address: `${pdu.mock.address}/${number}`,
      level: 2,
      credentialsSecretRef: { name: "pdu" },
    }));
    targets.mergePatch(KEY, { spec: { devices: [...(targets.get(KEY)?.spec.devices ?? []), ...devices] } });
  });
  after(async () => {
    await pdu[Symbol.asyncDispose]();
    await world.stop();
    await rm(folder, { recursive: true });
  });

  const enroll = (flags: string, options: CliOptions = {}): Promise<CliResult> =>
    cli(["enroll", ...flags.split(" "), "--kubeconfig", world.kubeconfigPath], options);
  const switched = (): number => pdu.mock.requests.filter(({ step }) => step === "set").length;

  it("ironfence enroll refuses a target in service, with each next step, and switches nothing", async () => {
    const { code, err } = await enroll("node-4 --yes");
    assert.equal(code, EXIT_REFUSED, err);
    assert.match(err, /not in maintenance: kubectl patch fencingtarget -n ironfence-system node-4/);
    assert.match(err, /node node-4 is not cordoned: kubectl cordon node-4/);
    const without = await enroll("node-1 --yes");
    assert.match(without.err, /spec.devices has no outlet/);
    assert.doesNotMatch(without.err, /would\n/, "there is nothing to switch");
    assert.equal((await enroll("node-99 --yes")).code, EXIT_REFUSED);
    assert.equal((await enroll("--yes")).code, EXIT_USAGE);
    assert.equal(switched(), 0);
  });

  it("ironfence enroll shows its steps and what the PDU says of each outlet, and asks before it begins", async () => {
    world.server.collection(FENCING_TARGETS).mergePatch(KEY, { spec: { maintenance: true } });
    world.server.collection(NODES).mergePatch({ name: "node-4" }, { spec: { unschedulable: true } });
    for (const { metadata, spec } of world.server.collection<Pod>(PODS).values()) {
      if (spec.nodeName !== "node-4") continue;
      const key = { namespace: metadata.namespace ?? "", name: metadata.name };
      world.server.collection(PODS).delete(key, { gracePeriodSeconds: 0 });
    }
    const shown = await enroll("node-4 --dry-run");
    assert.equal(shown.code, 0, shown.err);
    assert.match(shown.err, /1\. switch snmp:.*\/1 off and on: node node-4 must keep running/);
    assert.match(shown.err, new RegExp(`outlet 2 of PDU ${SERIAL} \\("two 2"\\)`));
    const asked = await enroll("node-4", { answers: ["no"] });
    assert.equal(asked.code, EXIT_REFUSED, asked.err);
    assert.match(asked.err, /whatever else is plugged into these outlets loses its power as well/);
    assert.ok(!`${shown.err}${asked.err}`.includes(PASSWORD));
    assert.equal(switched(), 0);
  });

  it("ironfence enroll refuses a third outlet without a meter until the user names it", async () => {
    const targets = world.server.collection<FencingTarget>(FENCING_TARGETS);
    const third = { address: `${pdu.mock.address}/3`, level: 2, credentialsSecretRef: { name: "pdu" } };
    targets.mergePatch(KEY, { spec: { devices: [...(targets.get(KEY)?.spec.devices ?? []), third] } });
    pdu.outlet(3).faults.hasLostMeter = true;
    const refused = await enroll("node-4 --yes");
    assert.equal(refused.code, EXIT_REFUSED, refused.err);
    assert.ok(refused.err.includes(`--confirm-outlets ${third.address}`), refused.err);
    const named = await enroll(`node-4 --dry-run --confirm-outlets ${third.address}`);
    assert.equal(named.code, 0, named.err);
    const wrong = await enroll(`node-4 --dry-run --confirm-outlets ${pdu.mock.address}/9,${third.address}`);
    assert.equal(wrong.code, EXIT_USAGE, wrong.err);
    assert.match(wrong.err, /names snmp:.*\/9, and FencingTarget node-4 has no such outlet/);
    assert.equal(switched(), 0);
  });
});
