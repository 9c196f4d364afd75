/**
 * Status of a BareMetalHost that is installed and runs: the fields that its CRD requires, as its operator writes them.
 */
export const PROVISIONED_STATUS = {
  operationalStatus: "OK",
  poweredOn: true,
  errorCount: 0,
  errorMessage: "",
  hardwareProfile: "unknown",
  provisioning: { ID: "1", state: "provisioned" },
} as const;
