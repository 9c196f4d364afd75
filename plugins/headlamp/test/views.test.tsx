import { cleanup, render, renderHook, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { HealthCheckDetail, NodeSection, RemediationDetail, TargetDetail } from "../src/details";
import { HealthCheckList, RemediationList, TargetList } from "../src/lists";
import { mapSource } from "../src/map";
import type { Remediation } from "../src/objects";
import { nodeOf } from "../src/objects";
import { itemsOf, Page, useApiServer } from "./cluster";

// It looks for kubeconfigs in a database of the browser, which jsdom does not have.
vi.mock("@kinvolk/headlamp-plugin/lib/stateless/findKubeconfigByClusterName", () => ({
  findKubeconfigByClusterName: () => Promise.resolve(null),
}));

const SHOWN = { timeout: 20_000 };
const NAMESPACE = "ironfence-system";

beforeAll(useApiServer);
afterEach(cleanup);

const shown = (text: RegExp) => screen.findAllByText(text, undefined, SHOWN);

/** The remediation of node-3, whose BMC does not answer: it has failed. */
async function failed(): Promise<Remediation> {
  const all = await itemsOf<Remediation>("/apis/ironfence.io/v1alpha1/baremetalremediations");
  const found = all.find((each) => nodeOf(each) === "node-3");
  if (found === undefined) throw new Error("the demo has left no remediation of node-3");
  return found;
}

describe("with the API server of the demo after its outages", () => {
  it("the list of targets says for how many nodes a fence would work, and names each", async () => {
    render(<TargetList />, { wrapper: Page });
    await shown(/of 6 nodes, \d usable, \d not usable, \d without a target/);
    for (const name of ["node-1", "node-6"]) await shown(new RegExp(`^${name}$`));
  });

  it("the list of remediations shows the failed one with its reason", async () => {
    render(<RemediationList />, { wrapper: Page });
    await shown(/^Failed$/);
    await shown(/^BMC\w+: /);
  });

  it("the list of health checks shows how many nodes are observed, and the storm", async () => {
    render(<HealthCheckList />, { wrapper: Page });
    await shown(/^workers$/);
    await shown(/^6$/);
  });

  it("the page of a target shows its device, and how its remediations ended", async () => {
    render(<TargetDetail name="node-1" namespace={NAMESPACE} />, { wrapper: Page });
    await shown(/redfish\+https:\/\/127\.0\.0\.1/);
    await shown(/NodeRestored: the node is Ready again in a new boot/);
  });

  it("the page of a remediation shows its verdict and its steps", async () => {
    const { metadata, status } = await failed();
    render(<RemediationDetail name={metadata.name} namespace={metadata.namespace} />, { wrapper: Page });
    await shown(/^Failed$/);
    await shown(new RegExp(`^${status?.timeline?.[0]?.step ?? "a step"}$`));
  });

  it("the page of a health check shows the nodes that are unhealthy", async () => {
    render(<HealthCheckDetail name="workers" />, { wrapper: Page });
    await shown(/node-3.*node-4/);
  });

  it("Headlamp's page of a node gets a section with its target", async () => {
    render(<NodeSection name="node-2" />, { wrapper: Page });
    await shown(/^FencingTarget$/);
  });

  it("the map has a node for each object, and edges between them", async () => {
    const { result } = renderHook(() => mapSource.useData(), { wrapper: Page });
    const labels = () => (result.current?.edges ?? []).map(({ label }) => label);
    await waitFor(() => {
      expect(labels().filter((label) => label === "powers")).toHaveLength(6);
      for (const label of ["remediates", "has started", "finds unhealthy"]) expect(labels()).toContain(label);
    }, SHOWN);
    expect(result.current?.nodes.some(({ status }) => status === "error")).toBe(true);
  });
});
