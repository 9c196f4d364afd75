import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { agentRoles } from "../../lib/agent-roles.ts";

const page = readFileSync(new URL("../../../SECURITY.md", import.meta.url), "utf8");
const section = /^## Who can power a host off\n(.*?)^## /msu.exec(page)?.[1] ?? "";
/** The name of each entry, which may span several lines. */
const buttons = [...section.matchAll(/^- \*\*(.*?)\*\*/gmsu)].map(([, name = ""]) => name.replaceAll(/\s+/gu, " "));

/** What the agent reads, with the entry that explains how a user who may write it can power a host off. */
const BUTTON_OF: Readonly<Record<string, RegExp>> = {
  fencingtargets: /^FencingTargets in the agent's namespace$/,
  secrets: /^Secrets in the agent's namespace$|^Secrets `\*-kubeconfig`/,
  baremetalremediations: /^BareMetalRemediations in any namespace$/,
  nodehealthchecks: /^NodeHealthChecks$/,
  baremetalremediationtemplates: /^BareMetalRemediationTemplates and/,
  metal3remediationtemplates: /and templates of other vendors$/,
  machinehealthchecks: /^MachineHealthChecks \(Cluster API, OKD\)/,
  metal3remediations: /^Metal3Remediations$/,
  machines: /^Machines, Metal3Machines and BareMetalHosts$|^OKD's annotation `host\.metal3\.io\/external-remediation`/,
  metal3machines: /^Machines, Metal3Machines/,
  baremetalhosts: /and BareMetalHosts$/,
  nodes: /^Nodes and their status$/,
  configmaps: /^the ConfigMap `ironfence-pause`$/,
};

/** What the agent also reads, with the reason why a user who may write it cannot power a host off. */
const NO_BUTTON: Readonly<Record<string, string>> = {
  clusters: "It leads to the Secret with the kubeconfig, which is a button.",
  clusterversions: "An upgrade of OKD only holds health checks.",
  leases: "Leases hold a fence, or show that a node is back.",
  machinesets: "It only says who replaces a Machine.",
  namespaces: "Only the UID of kube-system is read.",
  persistentvolumes: "They are read of a host that is off.",
  poddisruptionbudgets: "They only hold.",
  pods: "They are read of a host that is off, and as members of etcd, which only hold.",
  volumeattachments: "They are read of a host that is off.",
};
/** This entry concerns no object: a client with the agent's token needs none. */
const OF_NO_RESOURCE = /^Pods on the node that the agent runs on/;

const READING = new Set(["get", "list", "watch"]);
const read = new Set(
  agentRoles()
    .flatMap(({ rules }) => rules ?? [])
    .filter(({ verbs }) => verbs.some((verb) => READING.has(verb)))
    .flatMap(({ resources }) => resources),
);

describe("the power buttons in SECURITY.md", () => {
  it("the threat model names all that the agent may read and that decides on the power of a host", () => {
    assert.ok(read.size > 15, `${read.size} resources`);
    for (const resource of read) {
      const button = BUTTON_OF[resource];
      if (button === undefined) assert.ok(resource in NO_BUTTON, `${resource}: a button, or why is it none?`);
      else
        assert.ok(
          buttons.some((name) => button.test(name)),
          `SECURITY.md does not name ${resource}`,
        );
    }
  });

  it("name nothing that the agent does not read", () => {
    for (const name of buttons) {
      const resources = Object.keys(BUTTON_OF).filter((resource) => BUTTON_OF[resource]?.test(name));
      if (OF_NO_RESOURCE.test(name)) continue;
      assert.ok(resources.length > 0, `${name}: no resource`);
    }
    // The agent gets the permission to read templates by aggregation, as for templates of other vendors.
    const known = [...Object.keys(BUTTON_OF), ...Object.keys(NO_BUTTON)];
    const unread = known.filter((resource) => !read.has(resource) && resource !== "baremetalremediationtemplates");
    assert.deepEqual(unread, []);
  });
});
