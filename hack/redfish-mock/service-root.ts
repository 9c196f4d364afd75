import type { Body } from "./answer.ts";
import type { Endpoint, ServiceState } from "./endpoint.ts";
import { COLLECTION_TYPES, ROOT, SCHEMA_VERSIONS, link, resource } from "./resource.ts";

// Resources that need no login: versions, the service root, and the two OData documents (DSP0266, clause 8).

const SERVICES = {
  Systems: `${ROOT}/Systems`,
  Chassis: `${ROOT}/Chassis`,
  Managers: `${ROOT}/Managers`,
  Tasks: `${ROOT}/TaskService`,
  SessionService: `${ROOT}/SessionService`,
  AccountService: `${ROOT}/AccountService`,
} as const;

export function versionsEndpoint(): Endpoint {
  return { isPublic: true, get: () => ({ v1: `${ROOT}/` }) };
}

export function rootEndpoint(state: ServiceState): Endpoint {
  const services = Object.fromEntries(Object.entries(SERVICES).map(([name, path]) => [name, link(path)]));
  return {
    isPublic: true,
    get: () =>
      resource("ServiceRoot", `${ROOT}/`, "RootService", "Root Service", {
        RedfishVersion: "1.18.0",
        UUID: state.uuid,
        Vendor: "ironfence",
        Product: "Simulated BMC",
        ProtocolFeaturesSupported: {
          ExcerptQuery: false,
          FilterQuery: false,
          OnlyMemberQuery: false,
          SelectQuery: false,
          ExpandQuery: { ExpandAll: false, Levels: false, Links: false, NoLinks: false },
        },
        ...services,
        Links: { Sessions: link(`${ROOT}/SessionService/Sessions`) },
      }),
  };
}

export function odataEndpoint(): Endpoint {
  const entries: Body[] = [["Service", `${ROOT}/`], ...Object.entries(SERVICES)].map(([name, url]) => ({
    name,
    kind: "Singleton",
    url,
  }));
  return { isPublic: true, get: () => ({ "@odata.context": `${ROOT}/$metadata`, value: entries }) };
}

export function metadataEndpoint(): Endpoint {
  const references = [
    reference("ServiceRoot", ["ServiceRoot", `ServiceRoot.${SCHEMA_VERSIONS.ServiceRoot}`]),
    ...Object.entries(SCHEMA_VERSIONS)
      .filter(([type]) => type !== "ServiceRoot")
      .map(([type, version]) => reference(type, [type, `${type}.${version}`])),
    ...COLLECTION_TYPES.map((type) => reference(type, [type])),
    reference("RedfishExtensions", ["RedfishExtensions.v1_0_0"], "Redfish"),
  ];
  const xml = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">',
    ...references,
    "  <edmx:DataServices>",
    '    <Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">',
    `      <EntityContainer Name="Service" Extends="ServiceRoot.${SCHEMA_VERSIONS.ServiceRoot}.ServiceContainer"/>`,
    "    </Schema>",
    "  </edmx:DataServices>",
    "</edmx:Edmx>",
    "",
  ].join("\n");
  return { isPublic: true, get: () => xml };
}

function reference(file: string, namespaces: readonly string[], alias?: string): string {
  const suffix = alias === undefined ? "" : ` Alias="${alias}"`;
  return [
    `  <edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/${file}_v1.xml">`,
    ...namespaces.map((namespace) => `    <edmx:Include Namespace="${namespace}"${suffix}/>`),
    "  </edmx:Reference>",
  ].join("\n");
}
