import { BMC_OPTIONS } from "../../config/bmc-options.ts";
import { flagName, OptionError } from "../../config/option.ts";
import type { ClusterOptions } from "../../config/cluster-options.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import type { CliContext } from "../terminal/context.ts";
import type { FlagTexts } from "../../config/option.ts";
import { flagsOf } from "../flags/flags.ts";
import { proposeTargets } from "../flags/proposals.ts";

// Commands for one host take the address of its BMC or the name of its FencingTarget.

type OptionName = keyof typeof BMC_OPTIONS | keyof typeof CLUSTER_OPTIONS | "output" | "target" | "password";
export type SelectionFlags = Readonly<Partial<Record<OptionName, string>>>;

const parsed = { kind: "parsed", parse: String, optional: true } as const;

/** The flag exists so that a password can be refused with a message that does not repeat it. */
export const PASSWORD_FLAG = {
  ...parsed,
  placeholder: "none",
  hidden: true,
  brief: "Refused: see --password-file",
} as const;

export const SELECTION_FLAGS = {
  target: {
    ...parsed,
    placeholder: "name",
    brief: "FencingTarget of the host, instead of an address",
    proposeCompletions: proposeTargets,
  },
  ...flagsOf(BMC_OPTIONS),
  ...flagsOf({ ...CLUSTER_OPTIONS, output: OUTPUT_OPTION }),
  password: PASSWORD_FLAG,
} as const;

export const SELECTION_POSITIONAL = {
  kind: "tuple",
  parameters: [
    {
      brief: "Address of the BMC: redfish://host[:port]/redfish/v1/Systems/1, https://host, ipmi://host, …",
      placeholder: "address",
      parse: String,
      optional: true,
    },
  ],
} as const;

/** The host that the user has selected. */
export type HostSelection = { address: string } | { target: string; cluster: ClusterOptions };

/** @throws OptionError unless exactly one of address and target is given. */
export function selectHost(context: CliContext, address: string | undefined, flags: SelectionFlags): HostSelection {
  const { target } = flags;
  refusePassword(flags);
  if (address !== undefined && target === undefined) return { address };
  if (address !== undefined || target === undefined) {
    throw new OptionError("give either the ADDRESS of a BMC or --target NAME");
  }
  const texts: FlagTexts = flags;
  const ofBmc = Object.values(BMC_OPTIONS).find(({ name }) => texts[name] !== undefined);
  if (ofBmc !== undefined) {
    throw new OptionError(
      `${flagName(ofBmc.name)}: a --target has credentials and certificates in its FencingTarget and Secrets`,
    );
  }
  return { target, cluster: resolveClusterOptions(flags, context.process.env) };
}

/** @throws OptionError if there is a password on the command line. */
export function refusePassword({ password }: { readonly password?: string }): void {
  if (password === undefined) return;
  throw new OptionError(
    "--password: refused, since every user of this machine can read command lines; change that password, then set IRONFENCE_BMC_PASSWORD, use --password-file, or type it when asked",
  );
}
