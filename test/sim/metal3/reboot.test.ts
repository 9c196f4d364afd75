import assert from "node:assert/strict";
import { it } from "node:test";
import type { RequestRecord } from "../../../hack/kube-mock/api-server.ts";
import { beyondRights, readRules } from "../../lib/rights.ts";
import { METAL3, Metal3World } from "./world.ts";

it("a reboot fences a host through its operator: kept off, proven by a reading of ironfence, drained, powered on and returned", () =>
  Metal3World.run({}, async (world) => {
    const asked: RequestRecord[] = [];
    world.server.onRequest((record) => asked.push(record));
    await world.killAgent();
    world.startAgent();
    world.createPod("n1", "db");
    await world.clock.advance(3_000);
    const host = await world.hang();
    const bootID = host.bootID;
    world.remediate("n1");
    await world.phase("Succeeded");
    assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"], "the operator's orders, and no others");
    assert.deepEqual(world.pods("n1"), []);
    assert.notEqual(host.bootID, bootID);
    assert.equal(world.remediation("n1")?.status?.target?.kind, "BareMetalHost");
    assert.ok(world.bmh().metadata.annotations?.["ironfence.io/last-reboot"]?.includes(bootID));
    world.assertClean();
    const rules = ["deploy/kustomize/role-agent.yaml", "deploy/families/bare-metal-host/role-bare-metal-host.yaml"];
    const ofAgent = asked.filter(
      ({ client, path }) => client === "agent" && !/\/namespaces\/(ironfence|kube-node-lease)\//.test(path),
    );
    assert.deepEqual(beyondRights(ofAgent, rules.flatMap(readRules)), [], "the shipped permissions are enough");
    const secrets = ofAgent.filter(({ path }) => path.includes("/secrets"));
    assert.ok(secrets.length > 0 && secrets.every(({ path }) => path.includes(`/namespaces/${METAL3}/secrets/bmc`)));
  }));
