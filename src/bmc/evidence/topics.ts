import type { Topic } from "./model.ts";
import { WORDS_MAX } from "./plain-text.ts";

/**
 * The topics of message ids, by vendor. An id is compared without its registry and version: `IDRAC.2.8.MEM0001` is
 * `MEM0001`. Sources: the event message references of Dell (iDRAC) and Lenovo (XCC), the registries of OpenBMC
 * (`openbmc_message_registry`) and of DMTF (DSP8011: Platform, Power, Environmental, StorageDevice, SensorEvent).
 */
const IDS: readonly (readonly [id: RegExp, topic: Topic])[] = [
  // Dell
  [/^MEM\d+/, "Memory"],
  [/^CPU0001$|^(?:TMP|FAN|THRM?)\d+/, "Thermal"],
  [/^CPU\d+/, "CPU"],
  [/^(?:PSU|VLT|PWR2\d)\d+/, "PSU"],
  [/^(?:PDR|VDR|STOR|CTL|ENC|BAT|SSD|NVM)\d+/, "Disk"],
  [/^(?:PCI|GPU)\d+/, "PCIe"],
  [/^ASR\d+/, "Watchdog"],
  [/^(?:SYS1\d{3}|PWR\d+|RSR\d+)$/, "Power"],
  // Lenovo
  [/^FQXS[FP]MA/, "Memory"],
  [/^FQXS[FP]PU/, "CPU"],
  [/^FQXSP(?:PW|PP)/, "PSU"],
  [/^FQXSPCA/, "Thermal"],
  [/^FQXS[FP]SD|^FQXSPSS|^FQXSTD/, "Disk"],
  [/^FQXS[FP]IO/, "PCIe"],
  [/^FQXSPOS|^FQXSPWD/, "Watchdog"],
  // OpenBMC and DMTF
  [/Watchdog|ASRReset|AutomaticServerRecovery/i, "Watchdog"],
  [/Therm(?:al)?Trip|Temperature|Overtemp|ThermalT|^Fan|FanFail|CoolingUnit|Leak/i, "Thermal"],
  [/Memory|DIMM|ADDDC|ECC(?!RC)/, "Memory"],
  [/PCIe|PCIPERR|PCISERR|LegacyPCI|GPU|NVLink|Xid/i, "PCIe"],
  [/PowerSupply|PSU|VoltageRegulator|PowerRail|PowerGood|PowerUnit|ACLost|PowerInput|BrownOut/i, "PSU"],
  [/Drive|StorageDevice|Volume|^Disk|NVMe|RAID/i, "Disk"],
  [/CPU|Processor|Caterr|IERR|MachineCheck|\bMCA/i, "CPU"],
  [
    /^(?:DCPower|ACPower|System|Host|Chassis|Server)?(?:Power(?:ed)?(?:On|Off)|Reset)$|PowerButton|ResetButton/i,
    "Power",
  ],
];

/** The topics of words, the most specific first: "CPU 1 DIMM B2" is Memory, "CPU thermal trip" is Thermal. */
const WORDS: readonly (readonly [words: RegExp, topic: Topic])[] = [
  [
    /\bwatchdog|\bwdt\b|\bASR\b|automatic server recovery|kernel panic|\bOS (?:stop|hang|crash)|run-time critical stop/i,
    "Watchdog",
  ],
  [
    /therm(?:al)?[\s_-]*trip|over[\s_-]?temp|temperature|(?<![a-z])(?:temp|therm|overt)(?![a-z])|overheat|\bthermal|\bfans?\d*\b|\bcooling|coolant|\bleak/i,
    "Thermal",
  ],
  [/dimm|\bmemory|\becc\b|\badddc\b|\bhbm\b|row[\s-]remap|\bSRAM\b/i, "Memory"],
  [/\bdrives?(?![a-z])|\bdisks?\b|\bhdd|\bssd|nvme|\braid\b|\bstorage|\bbackplane|\bS\.?M\.?A\.?R\.?T\b/i, "Disk"],
  [
    /\bpci\b|\bpci[-\s]?e|\baer\b|surprise (?:link )?down|bus (?:fatal|uncorrectable)|\bgpus?\d*\b|\bxid\b|nvlink|accelerator|\b[PS]ERR\b/i,
    "PCIe",
  ],
  [
    /\bpsu|power[\s_-]suppl|\bps\d\b|\bAC\b.*\b(?:lost|loss|fail)|power input|input (?:power |voltage )?(?:is )?(?:lost|loss)|voltage|\bvr[dm]?\b|\bvcore|regulator|power[ .](?:fault|failure|unit|loss|rail)|loss of power|brown-?out|power[\s_-]?(?:good|OK)\b/i,
    "PSU",
  ],
  [
    /\bIERR|CATERR|MCERR|machine[\s-]check|\bMCA\b|\bMCE\b|processor|\bcpu|uncore|\b[UQ]PI\b|three[\s-]strike|3[\s-]strike/i,
    "CPU",
  ],
];

const POWER =
  /power(?:ed|ing)?[\s-](?:is )?(?:turn(?:ed|ing) )?(?:off|on|down|up)\b|power (?:button|cycle|state)|turned (?:off|on)|turning (?:off|on)|force[\s-]?off|S0\/G0|S[45]\/G2|soft[\s-]?off|system (?:reset|boot|restart)|(?:hard |warm |cold )reset|resetting|shut ?down/i;

/** The topic of a message id; undefined if the id does not show it. */
export function topicOfId(id: string): Topic | undefined {
  const key = id.slice(0, WORDS_MAX).split(/[./:]/).at(-1) ?? "";
  return IDS.find(([pattern]) => pattern.test(key))?.[1];
}

/** The topic of a text. */
export function topicOfWords(whole: string): Topic {
  const text = whole.slice(0, WORDS_MAX);
  const found = WORDS.find(([pattern]) => pattern.test(text))?.[1];
  return found ?? (POWER.test(text) ? "Power" : "None");
}
