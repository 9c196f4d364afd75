import { buildCommand } from "@stricli/core";
import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../api/ironfence/fencing-target.ts";
import { PODS } from "../../api/kubernetes/core-types.ts";
import type { Pod } from "../../api/kubernetes/core.ts";
import { outletAnswers } from "../../bmc/topology/outlets.ts";
import type { OutletAnswer } from "../../bmc/topology/outlets.ts";
import { isOutletAddress } from "../../bmc/interface/address.ts";
import { ENROLL_TIMEOUT_OPTION } from "../../config/bmc-options.ts";
import type { ClusterOptions } from "../../config/cluster-options.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import { OptionError, requireOption } from "../../config/option.ts";
import { reviewPermissions } from "../../kube/reviews/permission-review.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { OpenedDevice } from "../../remediator/hosts/fencing-target/devices.ts";
import { openDevices } from "../../remediator/hosts/fencing-target/devices.ts";
import { withRuntime } from "../cluster/connect.ts";
import { readUserName } from "../cluster/user-name.ts";
import { concernsOf, planEnrolment } from "../enroll/plan-enrolment.ts";
import { EnrollProcedure } from "../enroll/procedure.ts";
import type { EnrollSubject } from "../enroll/procedure.ts";
import { CommandRefusal } from "../errors/failures.ts";
import { isUnfinished, subjectNodeKey } from "../fence/preview.ts";
import { flagsOf, switchFlag, YES_FLAG } from "../flags/flags.ts";
import { proposeTargets } from "../flags/proposals.ts";
import type { TargetContext } from "../hosts/targets.ts";
import { readTarget } from "../hosts/targets.ts";
import { confirm } from "../terminal/confirm.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine, printNote } from "../terminal/context.ts";
import type { Plan } from "../terminal/plan.ts";
import { printPlan } from "../terminal/plan.ts";
import { WaitingLine } from "../terminal/waiting-line.ts";

const OPTIONS = { ...CLUSTER_OPTIONS, output: OUTPUT_OPTION, timeout: ENROLL_TIMEOUT_OPTION };
type EnrollFlags = Readonly<
  Partial<Record<keyof typeof OPTIONS, string>> & { dryRun: boolean; yes: boolean; confirmOutlets?: readonly string[] }
>;

/** `ironfence enroll`: shows that outlets of PDUs feed one host, and stores that. */
export const enrollCommand = buildCommand<EnrollFlags, [target: string], CliContext>({
  func: async function enroll(this: CliContext, { dryRun, yes, confirmOutlets: confirmed = [], ...texts }, targetName) {
    const { env } = this.process;
    if (targetName === "") throw new OptionError("name the FencingTarget whose outlets are to be enrolled");
    const options = resolveClusterOptions(texts, env);
    const output = requireOption(OUTPUT_OPTION, texts, env);
    const timeoutMs = requireOption(ENROLL_TIMEOUT_OPTION, texts, env);
    await withRuntime(this, options, async (runtime) => {
      const { host, plan } = await prepare(this, runtime, options, targetName);
      if (plan.steps.length > 0) printPlan(this, `an enrolment of the outlets of FencingTarget ${targetName}`, plan);
      ensureAllowed(targetName, plan);
      const opened = await openDevices({ runtime, openDevice: this.openDevice }, host.target, this.signal);
      try {
        ensureUsable(opened);
        const answers = await outletAnswers(partDevices(opened).outlets, this.signal);
        const labels = answers.map(labelOf);
        for (const label of labels) printNote(this, `  ${label}`);
        ensureShowable(targetName, answers, confirmed);
        if (dryRun || host.node === undefined) return;
        await confirm(this, `switch these outlets off and on`, concernsOf(host.node, labels), yes);
        // The user may have taken long to answer.
        const now = await prepare(this, runtime, options, targetName);
        ensureAllowed(targetName, now.plan);
        ensureUnchanged(targetName, host, now.host);
        const enrolment = await switchOutlets(this, runtime, host, opened, { timeoutMs, confirmed });
        if (output === "json") printLine(this, JSON.stringify({ target: targetName, enrolment }));
        else {
          printLine(this, `the outlets of FencingTarget ${targetName} are enrolled for node ${enrolment.nodeName}`);
          printNote(this, "next: set spec.maintenance to false, and uncordon the node");
        }
      } finally {
        await Promise.all(opened.map(({ driver }) => driver.close()));
      }
    });
  },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [
        { brief: "The FencingTarget", placeholder: "target", parse: String, proposeCompletions: proposeTargets },
      ],
    },
    flags: {
      dryRun: switchFlag("Show each step, and what prevents the enrolment; switch nothing"),
      confirmOutlets: {
        kind: "parsed",
        parse: String,
        variadic: ",",
        optional: true,
        placeholder: "addresses",
        brief:
          "If there are more than two outlets: those whose plugs you have checked yourself, so that no meter has to show them",
      },
      yes: YES_FLAG,
      ...flagsOf(OPTIONS),
    },
    aliases: { n: "namespace", o: "output", y: "yes" },
  },
  docs: {
    brief: "Show that outlets of PDUs feed a host, and enrol them for it",
    fullDescription: [
      "Switches each outlet of the target off and on: the node must keep running. Then it switches all of them off, for a minute:",
      "the node must stop. They are switched on again, and the node must come back Ready in a new boot. Every BMC of the target must",
      "answer, one of them must show that the host lost its power, and no other node may be affected. If there are more than two",
      "outlets, the others must take over the load of each outlet while it is off, or you name it in --confirm-outlets. Only then the",
      "enrolment is stored. Any edit of what it depends on ends it (docs/how-to/enrol-pdu-outlets.md). It takes 5 to 15 minutes.",
      "The target has to be in maintenance, and its node cordoned and drained. No option overrides this.",
      "After a failure and after Ctrl-C the outlets are switched on again, and the last lines say what is left.",
      "Exit codes: 0 enrolled, 1 not shown or failed, 2 wrong command line, 3 refused (nothing was switched).",
    ].join("\n"),
    customUsage: [
      { input: "worker-3 --dry-run", brief: "each step, and what prevents it" },
      { input: "worker-3", brief: "asks before it begins" },
      { input: "worker-3 --confirm-outlets snmp://pdu-1/7,snmp://pdu-2/9", brief: "outlets without meters" },
      { input: "worker-3 --yes -o json", brief: "for scripts" },
    ],
  },
});

interface Prepared {
  host: TargetContext;
  plan: Plan;
}

async function prepare(
  context: CliContext,
  runtime: KubeRuntime,
  { namespace }: ClusterOptions,
  targetName: string,
): Promise<Prepared> {
  const { signal, openDevice } = context;
  const { client } = runtime;
  const host = await readTarget({ runtime, openDevice }, namespace, { targetName }, signal);
  const { nodeName } = host.target.spec;
  const { group, plural } = FENCING_TARGETS;
  const wanted = [
    { verb: "patch", group, resource: `${plural}/status`, namespace },
    { verb: "get", group: "coordination.k8s.io", resource: "leases", namespace: "kube-node-lease", name: nodeName },
    { verb: "list", group: "coordination.k8s.io", resource: "leases", namespace: "kube-node-lease" },
    { verb: "list", group: "", resource: "nodes" },
  ];
  const [{ items: pods }, { items: remediations }, reviews] = await Promise.all([
    client.list<Pod>(PODS, { fieldSelector: `spec.nodeName=${nodeName}` }, signal),
    client.list<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, {}, signal),
    reviewPermissions(client, "self", wanted, signal),
  ]);
  const conflict = host.directory.conflictOf(host.target.metadata.uid)?.message;
  const underWay = remediations.filter((found) => isUnfinished(found) && subjectNodeKey(found) === nodeName);
  const plan = planEnrolment({ host, conflict, pods, underWay });
  const lacking = reviews
    .filter(({ allowed }) => !allowed)
    .map(({ permission }) => `${permission.verb} ${permission.resource}`);
  const roles = "Roles ironfence-operator and ironfence-enroller";
  if (lacking.length > 0) plan.obstacles.push(`you lack permissions: ${lacking.join(", ")} (${roles})`);
  return { host, plan };
}

function ensureAllowed(targetName: string, { obstacles }: Plan): void {
  if (obstacles.length === 0) return;
  const why = `the outlets of FencingTarget ${targetName} are not enrolled, since ${obstacles.join("; and ")}`;
  throw new CommandRefusal("Refused", `${why}. Nothing was switched`);
}

function ensureUnchanged(targetName: string, agreed: TargetContext, now: TargetContext): void {
  const isSame =
    agreed.target.metadata.uid === now.target.metadata.uid &&
    agreed.target.metadata.generation === now.target.metadata.generation;
  if (isSame) return;
  throw new CommandRefusal(
    "Refused",
    `FencingTarget ${targetName} was edited since it was shown. Nothing was switched`,
  );
}

/** @throws CommandRefusal if a device of the target cannot be used: each outlet is switched, and each BMC is asked. */
function ensureUsable(opened: readonly OpenedDevice[]): void {
  const failure = opened.find((device) => device.failure !== undefined)?.failure;
  if (failure !== undefined) throw new CommandRefusal("Refused", `${failure.message}. Nothing was switched`);
}

/** The outlets and the BMCs of a target. */
function partDevices(opened: readonly OpenedDevice[]): Pick<EnrollSubject, "outlets" | "bmcs"> {
  const outlets = opened.filter(({ address }) => isOutletAddress(address));
  const bmcs = opened.filter(({ address }) => !isOutletAddress(address));
  return { outlets: outlets.map(({ driver }) => driver), bmcs: bmcs.map(({ driver }) => driver) };
}

function labelOf({ address, outlet, pdu, label }: OutletAnswer): string {
  return `${address} is outlet ${outlet} of PDU ${pdu} (${label === undefined ? "no label" : `"${label}"`})`;
}

/**
 * @throws OptionError if the user names an outlet that the target does not have.
 * @throws CommandRefusal if no meter can show that an outlet feeds the host, and the user has not named it.
 */
function ensureShowable(targetName: string, answers: readonly OutletAnswer[], confirmed: readonly string[]): void {
  const addresses = answers.map(({ address }) => address);
  const stranger = confirmed.find((address) => !addresses.includes(address));
  if (stranger !== undefined) {
    throw new OptionError(`--confirm-outlets names ${stranger}, and FencingTarget ${targetName} has no such outlet`);
  }
  const unmetered = answers.filter(({ metered, address }) => metered !== true && !confirmed.includes(address));
  if (answers.length <= 2 || unmetered.length === 0) return;
  const list = unmetered.map(({ address }) => address).join(",");
  const why = `if there are more than two outlets, one may feed nothing or another host, and these have no meter that could show it: check their plugs, and name them: --confirm-outlets ${list}`;
  throw new CommandRefusal("Refused", `${why}. Nothing was switched`);
}

async function switchOutlets(
  context: CliContext,
  runtime: KubeRuntime,
  { target }: TargetContext,
  opened: readonly OpenedDevice[],
  given: Pick<EnrollSubject, "timeoutMs" | "confirmed">,
) {
  const { signal } = context;
  const subject = {
    target,
    ...partDevices(opened),
    enrolledBy: await readUserName(runtime.client, signal),
    ...given,
  };
  const waiting = new WaitingLine(context);
  const note = (text: string): void => {
    waiting.clear();
    printNote(context, `  ${text}`);
  };
  try {
    return await new EnrollProcedure(runtime, subject, { note, wait: (what) => waiting.show(what) }).run(signal);
  } finally {
    waiting.clear();
  }
}
