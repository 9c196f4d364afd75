/** Vendors of BMCs, by a part of the manufacturer in Redfish or FRU data, in lower case. */
const MANUFACTURERS = {
  asrock: "ASRock",
  cisco: "Cisco",
  dell: "Dell",
  fujitsu: "Fujitsu",
  giga: "Gigabyte",
  hewlett: "HPE",
  hp: "HPE",
  huawei: "Huawei",
  xfusion: "Huawei",
  inspur: "Inspur",
  intel: "Intel",
  lenovo: "Lenovo",
  ibm: "Lenovo",
  nvidia: "NVIDIA",
  quanta: "Quanta",
  "super micro": "Supermicro",
  supermicro: "Supermicro",
} as const;

/** `other` is a manufacturer that is not listed, `unknown` a host whose BMC has not reported one. */
export const VENDORS = [...new Set(Object.values(MANUFACTURERS)), "other", "unknown"] as const;
export type Vendor = (typeof VENDORS)[number];

/** The vendor of a host by the manufacturer that its BMC reports. The set of vendors is bounded. */
export function vendorOf(manufacturer: string | undefined): Vendor {
  const text = manufacturer?.trim().toLowerCase() ?? "";
  if (text === "") return "unknown";
  for (const [part, vendor] of Object.entries(MANUFACTURERS)) if (text.includes(part)) return vendor;
  return "other";
}
