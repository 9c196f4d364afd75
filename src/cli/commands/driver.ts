import { buildCommand, buildRouteMap } from "@stricli/core";
import { checkServer } from "../../bmc/http-driver/conformance/check-server.ts";
import type { RuleResult } from "../../bmc/http-driver/conformance/check-server.ts";
import { parseBmcAddress } from "../../bmc/interface/address.ts";
import type { DriverAddress } from "../../bmc/interface/address.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import { BMC_OPTIONS, POWER_TIMEOUT_OPTION } from "../../config/bmc-options.ts";
import { OUTPUT_OPTION } from "../../config/cluster-options.ts";
import { OptionError, requireOption } from "../../config/option.ts";
import { CommandFailure } from "../errors/failures.ts";
import { flagsOf, YES_FLAG } from "../flags/flags.ts";
import { readDeviceConfig } from "../hosts/bmc-login.ts";
import { PASSWORD_FLAG, refusePassword } from "../hosts/host-selection.ts";
import { confirm } from "../terminal/confirm.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";

const {
  cipherSuites: _cipherSuites,
  snmpVersion: _version,
  snmpSecurityLevel: _level,
  snmpAuthProtocol: _auth,
  snmpPrivProtocol: _priv,
  snmpMib: _mib,
  ...HTTP_OPTIONS
} = BMC_OPTIONS;
const FLAGS = flagsOf({ ...HTTP_OPTIONS, timeout: POWER_TIMEOUT_OPTION, output: OUTPUT_OPTION });
type RuleFlags = Readonly<Partial<Record<keyof typeof FLAGS | "password", string>>> & Readonly<{ yes: boolean }>;

const SIGNS = { ok: "√", failed: "×", skipped: "-" } as const;

const checkCommand = buildCommand<RuleFlags, [address: string], CliContext>({
  func: async function driverCheck(this: CliContext, { yes: agreed, ...flags }, text) {
    refusePassword(flags);
    const output = requireOption(OUTPUT_OPTION, flags, this.process.env);
    const powerTimeoutMs = requireOption(POWER_TIMEOUT_OPTION, flags, this.process.env);
    const address = readAddress(text);
    const config = await readDeviceConfig(this, address.text, flags);
    const concern = "it powers the host off and on again: choose one whose loss does not matter";
    await confirm(this, `check the driver server at ${address.text}`, [concern], agreed);
    const onResult = (result: RuleResult): void => {
      if (output === "table") printLine(this, renderResult(result));
    };
    const results = await checkServer(address, config, { clock: this.clock, powerTimeoutMs, onResult }, this.signal);
    const broken = results.filter(({ result }) => result !== "ok");
    if (output === "json") printLine(this, JSON.stringify({ ok: broken.length === 0, rules: results }));
    if (broken.length === 0) return;
    const names = broken.map(({ rule }) => rule).join(", ");
    throw new CommandFailure("ChecksFailed", `${address.text}: the server does not keep these rules: ${names}`);
  },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [
        {
          brief: "Address of a host: driver://server[:port]/path, or the same with https:// or http://",
          placeholder: "address",
          parse: String,
        },
      ],
    },
    flags: {
      ...FLAGS,
      password: PASSWORD_FLAG,
      yes: YES_FLAG,
    },
    aliases: { o: "output", y: "yes" },
  },
  docs: {
    brief: "Try a driver server, and power one of its hosts off and on",
    fullDescription: [
      "Tries each rule of docs/reference/driver.md on one host that is on, and prints a line for each: √ kept, × broken, - not",
      "tried because an earlier rule is broken. It sends orders that the server must refuse (replayed, forged, too old, for another",
      "host), and then powers the host off and on again. It takes up to 20 s longer than the host takes for that.",
      "The user name is the key id and the password is the key.",
      "Exit codes: 0 every rule is kept, 1 a rule is broken, 2 wrong command line, 3 refused (nothing was sent).",
    ].join("\n"),
    customUsage: [
      { input: "driver://power.example:8443/hosts/spare-1", brief: "asks for key id and key" },
      { input: "https://power.example:8443/hosts/spare-1 --yes --password-file key -o json", brief: "for scripts" },
    ],
  },
});

/** @throws OptionError for an address that is not one of a driver server. */
function readAddress(text: string): DriverAddress {
  try {
    const address = parseBmcAddress(text.replace(/^https?:\/\//iu, (scheme) => `driver+${scheme}`));
    if (address.protocol === "driver") return address;
  } catch (error) {
    if (!(error instanceof BmcError)) throw error;
    throw new OptionError(error.message, { cause: error });
  }
  throw new OptionError("give the address of a driver server: driver://server[:port]/path");
}

function renderResult({ rule, says, result, detail }: RuleResult): string {
  return `${SIGNS[result]} ${rule.padEnd(16)} ${says}: ${detail}`;
}

/** `ironfence driver`: work with driver servers. */
export const driverCommands = buildRouteMap({
  routes: { check: checkCommand },
  docs: { brief: "Try a driver server, for hosts without Redfish and IPMI" },
});
