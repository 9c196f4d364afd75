import { at, fields, outcome } from "../api.ts";
import type { Api, ConformanceCase } from "../api.ts";

// What the schemas of our CRDs accept and refuse. crd-rules.real.test.ts has the CEL rules, which only the real server
// evaluates.

const IRONFENCE = "ironfence.io/v1alpha1";
const CHECKS = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks";
const INVALID = { status: 422, reason: "Invalid", group: "ironfence.io" };

function create(api: Api, kind: string, plural: string, spec: unknown) {
  const body = { apiVersion: IRONFENCE, kind, metadata: { name: "a" }, ...(spec !== undefined && { spec }) };
  return api.send("POST", api.in(IRONFENCE, plural), body);
}

const remediation = (api: Api, spec: unknown) => create(api, "BareMetalRemediation", "baremetalremediations", spec);
const target = (api: Api, spec: unknown) => create(api, "FencingTarget", "fencingtargets", spec);

async function check(api: Api, change: object) {
  const spec = {
    selector: { matchLabels: { a: "b" } },
    remediationTemplate: { apiVersion: IRONFENCE, kind: "BareMetalRemediationTemplate", namespace: "a", name: "a" },
    ...change,
  };
  const body = { apiVersion: "remediation.medik8s.io/v1alpha1", kind: "NodeHealthCheck" };
  return api.send("POST", `${CHECKS}?dryRun=All`, { ...body, metadata: { name: api.namespace }, spec });
}

const STRATEGY = {
  type: "Reboot",
  retryLimit: 1,
  timeout: "600s",
  powerOffTimeout: "120s",
  powerOnTimeout: "300s",
  drainTimeout: "300s",
  workloadRelease: "OutOfServiceTaint",
  podRelease: "Eager",
  via: "NetworkBoot",
  requireReboot: true,
  diagnostics: "None",
  diagnosticsTimeout: "60s",
  powerOn: "On",
  acCycleTimeout: "300s",
};

export const SHIPPED_CRDS: readonly ConformanceCase[] = [
  {
    name: "our CRDs are Established under the chosen names",
    run: async (api) => {
      const names = [
        "baremetalremediations.ironfence.io",
        "baremetalremediationtemplates.ironfence.io",
        "fencingtargets.ironfence.io",
        "nodehealthchecks.remediation.medik8s.io",
      ];
      return Promise.all(
        names.map(async (name) => {
          const { body } = await api.get(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);
          return [
            at(body, "status.conditions.1.type"),
            at(body, "status.conditions.1.status"),
            at(body, "status.acceptedNames.shortNames"),
          ];
        }),
      );
    },
    answer: [["bmr"], ["bmrt"], ["ft"], ["nhc"]].map((shortNames) => ["Established", "True", shortNames]),
  },
  {
    name: "a BareMetalRemediation without a strategy reboots, with every default",
    run: async (api) => fields(await remediation(api, {}), "spec", "status"),
    answer: { status: undefined, spec: { strategy: STRATEGY } },
  },
  {
    name: "a BareMetalRemediationTemplate has the same defaults in its spec",
    run: async (api) => {
      const spec = { template: { spec: { strategy: { type: "Escalate" } } } };
      const created = await create(api, "BareMetalRemediationTemplate", "baremetalremediationtemplates", spec);
      return at(created.body, "spec.template.spec.strategy");
    },
    answer: { ...STRATEGY, type: "Escalate" },
  },
  {
    name: "a BareMetalRemediation with values that make no sense is refused field by field",
    run: async (api) => [
      outcome(await remediation(api, undefined)),
      outcome(await remediation(api, { strategy: { type: "Pray", retryLimit: -1, requireReboot: "no" } })),
      outcome(await remediation(api, { strategy: { retryLimit: 11, workloadRelease: "Hope" } })),
    ],
    answer: [
      { ...INVALID, kind: "BareMetalRemediation", wrong: ["spec FieldValueRequired"] },
      {
        ...INVALID,
        kind: "BareMetalRemediation",
        wrong: [
          "spec.strategy.requireReboot FieldValueTypeInvalid",
          "spec.strategy.retryLimit FieldValueInvalid",
          "spec.strategy.type FieldValueNotSupported",
        ],
      },
      {
        ...INVALID,
        kind: "BareMetalRemediation",
        wrong: ["spec.strategy.retryLimit FieldValueInvalid", "spec.strategy.workloadRelease FieldValueNotSupported"],
      },
    ],
  },
  {
    name: "conditions are unique by type, complete, and of a known status",
    run: async (api) => {
      await remediation(api, {});
      const path = `${api.in(IRONFENCE, "baremetalremediations", "a")}/status`;
      const time = "2026-01-01T00:00:00Z";
      const condition = { type: "Processing", status: "True", reason: "R", message: "", lastTransitionTime: time };
      const write = async (conditions: unknown) => outcome(await api.merge(path, { status: { conditions } }));
      return [
        await write([condition, { ...condition, type: "Succeeded", status: "Unknown" }]),
        await write([condition, condition]),
        await write([{ type: "Processing", status: "Maybe", lastTransitionTime: "yesterday" }]),
      ];
    },
    answer: [
      { status: 200 },
      { ...INVALID, kind: "BareMetalRemediation", wrong: ["status.conditions[1] FieldValueDuplicate"] },
      {
        ...INVALID,
        kind: "BareMetalRemediation",
        wrong: [
          "status.conditions[0].lastTransitionTime FieldValueTypeInvalid",
          "status.conditions[0].message FieldValueRequired",
          "status.conditions[0].reason FieldValueRequired",
          "status.conditions[0].status FieldValueNotSupported",
        ],
      },
    ],
  },
  {
    name: "a FencingTarget names its node and at least one device; the rest has defaults",
    run: async (api) => {
      const device = { address: "redfish+https://192.0.2.1/redfish/v1/Systems/1", credentialsSecretRef: { name: "a" } };
      return [
        outcome(await target(api, {})),
        outcome(await target(api, { nodeName: "a", devices: [] })),
        fields(await target(api, { nodeName: "a", devices: [device] }), "spec.maintenance", "spec.devices.0.level"),
      ];
    },
    answer: [
      {
        ...INVALID,
        kind: "FencingTarget",
        wrong: ["spec.devices FieldValueRequired", "spec.nodeName FieldValueRequired"],
      },
      { ...INVALID, kind: "FencingTarget", wrong: ["spec.devices FieldValueInvalid"] },
      { status: 201, "spec.maintenance": false, "spec.devices.0.level": 1 },
    ],
  },
  {
    name: "a FencingTarget accepts no name that leads to another path of the API",
    run: async (api) => {
      const device = { address: "redfish://192.0.2.1", credentialsSecretRef: { name: "../../kube-system/secrets/x" } };
      return outcome(await target(api, { nodeName: "../n1", devices: [device] }));
    },
    answer: {
      ...INVALID,
      kind: "FencingTarget",
      wrong: ["spec.devices[0].credentialsSecretRef.name FieldValueInvalid", "spec.nodeName FieldValueInvalid"],
    },
  },
  {
    name: "a NodeHealthCheck watches Ready for five minutes by default and sets no threshold",
    run: async (api) =>
      fields(await check(api, {}), "spec.unhealthyConditions", "spec.minHealthy", "spec.maxUnhealthy"),
    answer: {
      status: 201,
      "spec.unhealthyConditions": ["False", "Unknown"].map((status) => ({ type: "Ready", status, duration: "300s" })),
      "spec.minHealthy": undefined,
      "spec.maxUnhealthy": undefined,
    },
  },
  {
    name: "a NodeHealthCheck's threshold is a number or a percentage",
    run: async (api) => {
      const statuses = [];
      for (const minHealthy of [0, 3, "3", "51%", "100%", "101%", "-1", "half", true, 1.5]) {
        statuses.push((await check(api, { minHealthy })).status);
      }
      return statuses;
    },
    answer: [201, 201, 201, 201, 201, 422, 422, 422, 422, 422],
  },
  {
    name: "the conditions of a NodeHealthCheck are complete, and unique by type and status",
    run: async (api) => {
      const ready = { type: "Ready", status: "False", duration: "1s" };
      const conditions = async (...unhealthyConditions: unknown[]) =>
        outcome(await check(api, { unhealthyConditions }));
      return [
        await conditions(ready, { ...ready, status: "Unknown" }),
        await conditions(ready, { ...ready, duration: "2s" }),
        await conditions({ type: "", status: "False" }),
      ];
    },
    answer: [
      { status: 201 },
      {
        status: 422,
        reason: "Invalid",
        kind: "NodeHealthCheck",
        group: "remediation.medik8s.io",
        wrong: ["spec.unhealthyConditions[1] FieldValueDuplicate"],
      },
      {
        status: 422,
        reason: "Invalid",
        kind: "NodeHealthCheck",
        group: "remediation.medik8s.io",
        wrong: [
          "spec.unhealthyConditions[0].duration FieldValueRequired",
          "spec.unhealthyConditions[0].type FieldValueInvalid",
        ],
      },
    ],
  },
];
