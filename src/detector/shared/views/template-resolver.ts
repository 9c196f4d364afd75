import type { ObjectKey } from "../../../kube/client.ts";
import { isKubeError, KubeError } from "../../../kube/errors.ts";
import type { ResourceType } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { keyText } from "../../../kube/watched.ts";
import { didYouMean } from "../../../runtime/text/did-you-mean.ts";
import { DynamicKinds, kindKey } from "./dynamic-kinds.ts";
import type { RemediationStep, TemplateReference } from "../model/template-reference.ts";
import { remediationKind } from "../model/template-reference.ts";
import type { RemediationStore } from "./remediation-store.ts";
import type { Template, TemplateObject, TemplateProblem } from "../model/template.ts";
import { readTemplate, trimTemplate } from "../model/template.ts";

/** What to do if RBAC does not allow the agent to read the kinds of a vendor. */
const GRANT_HINT =
  'grant RBAC permissions on its kinds with a ClusterRole that is labeled rbac.ext-remediation/aggregate-to-ext-remediation: "true"';

/** How old the result of a GET may be. GETs are used if RBAC does not allow the agent to watch the templates. */
const FETCHED_MAX_MS = 15_000;

/** The templates of a health check in the order of its steps; `pending` if discovery of their kinds has not ended. */
export type Resolution = readonly Template[] | TemplateProblem | "pending";

/** Finds the templates that steps name, of any kind. It watches them, or reads them by GET if RBAC allows only that. */
export class TemplateResolver {
  readonly #runtime: KubeRuntime;
  readonly #kinds: DynamicKinds<TemplateObject>;
  readonly #remediations: RemediationStore;
  readonly #fetched = new Map<string, { object: TemplateObject | KubeError | undefined; atMs: number }>();

  constructor(runtime: KubeRuntime, remediations: RemediationStore, onChange: () => void, signal: AbortSignal) {
    this.#runtime = runtime;
    this.#remediations = remediations;
    this.#kinds = new DynamicKinds(runtime, { trim: trimTemplate, onChange }, signal);
  }

  async resolve(steps: readonly RemediationStep[], signal: AbortSignal): Promise<Resolution> {
    const templates: Template[] = [];
    for (const step of steps) {
      const template = await this.#resolveOne(step.template, signal);
      if (template === "pending" || "reason" in template) return template;
      templates.push(template);
    }
    return findClash(templates) ?? templates;
  }

  /** Ends the watches of kinds that are not among `used`. */
  retain(used: ReadonlySet<string>): void {
    this.#kinds.retain(used);
  }

  settled(): Promise<void> {
    return this.#kinds.settled();
  }

  async #resolveOne(
    reference: TemplateReference,
    signal: AbortSignal,
  ): Promise<Template | TemplateProblem | "pending"> {
    const { apiVersion, kind, namespace, name } = reference;
    const state = this.#kinds.state(apiVersion, kind);
    const remediations = this.#remediations.state(apiVersion, remediationKind(reference));
    if (state.state === "pending" || remediations.state === "pending") return "pending";
    if (state.state === "absent") {
      const hint = state.served === undefined ? absentHint(kind) : "";
      return notFound(`${notServed(kind, apiVersion, state.served)}${hint}`);
    }
    if (remediations.state === "absent") {
      return invalid(notServed(remediationKind(reference), apiVersion, remediations.served));
    }
    if (remediations.state === "forbidden") {
      return invalid(`cannot watch remediations of its kind: ${remediations.message}; ${GRANT_HINT}`);
    }
    const { type } = state;
    if (type.namespaced && namespace === undefined)
      return invalid(`${kind} ${name} is namespaced, but no namespace is set`);
    const key = type.namespaced && namespace !== undefined ? { namespace, name } : { name };
    const object = state.state === "watched" ? state.view.get(key) : await this.#fetch(type, key, signal);
    if (object instanceof KubeError) return invalid(`cannot read it: ${object.message}; ${GRANT_HINT}`);
    if (object === undefined) {
      const others = state.state === "watched" ? [...state.view.values()] : [];
      return notFound(`${kind} ${keyText(key)} not found${missingHint(key, others)}`);
    }
    const template = readTemplate(object, remediations.type);
    return typeof template === "string" ? invalid(template) : template;
  }

  async #fetch(
    type: ResourceType,
    key: { namespace?: string; name: string },
    signal: AbortSignal,
  ): Promise<TemplateObject | KubeError | undefined> {
    const id = `${kindKey(type.group, type.kind)}/${key.namespace ?? ""}/${key.name}`;
    const known = this.#fetched.get(id);
    const nowMs = this.#runtime.clock.monotonicMs();
    if (known !== undefined && nowMs - known.atMs < FETCHED_MAX_MS) return known.object;
    let object: TemplateObject | KubeError | undefined;
    try {
      object = trimTemplate(await this.#runtime.client.get(type, key, signal));
    } catch (error) {
      if (isKubeError(error, "Forbidden")) object = error;
      else if (!isKubeError(error, "NotFound")) throw error;
    }
    this.#fetched.set(id, { object, atMs: nowMs });
    return object;
  }
}

// CRs have the name of the node unless their names are generated, so CRs of one kind from two templates would have the
// same name.
function findClash(templates: readonly Template[]): TemplateProblem | undefined {
  const clash = templates.find(
    (a, index) =>
      !a.manyPerNode &&
      templates.some(
        (b, other) => other !== index && kindKey(b.type.group, b.type.kind) === kindKey(a.type.group, a.type.kind),
      ),
  );
  if (clash === undefined) return undefined;
  return invalid(`${clash.type.kind} is used more than once, and its template ${clash.name} does not support that`);
}

function notServed(kind: string, apiVersion: string, served: string | undefined): string {
  const other = served === undefined ? "" : `, only of ${served}: set that version in the template reference`;
  return `this cluster serves no ${kind} of ${apiVersion}${other}`;
}

/** Template kinds to suggest if a health check misspells one. */
const KNOWN_KINDS = [
  "BareMetalRemediationTemplate",
  "SelfNodeRemediationTemplate",
  "FenceAgentsRemediationTemplate",
  "MachineDeletionRemediationTemplate",
  "Metal3RemediationTemplate",
];

function absentHint(kind: string): string {
  const meant = didYouMean(kind, KNOWN_KINDS);
  return meant === undefined
    ? ": install the remediator that it belongs to, or correct apiVersion and kind of the template"
    : `: did you mean ${meant}? Correct the template's kind`;
}

/** A hint about a template with the same name in another namespace, or with a similar name. */
function missingHint({ namespace, name }: ObjectKey, others: Iterable<TemplateObject>): string {
  const all = [...others].map(({ metadata }) => metadata);
  const elsewhere = all.find((metadata) => metadata.name === name && metadata.namespace !== undefined);
  if (elsewhere !== undefined) return `: namespace ${elsewhere.namespace} has it; correct the template's namespace`;
  const siblings = all.filter((metadata) => metadata.namespace === namespace).map((metadata) => metadata.name);
  const meant = didYouMean(name, siblings);
  return meant === undefined ? ": create it, or correct the reference" : `: did you mean ${meant}? Correct its name`;
}

function notFound(message: string): TemplateProblem {
  return { reason: "RemediationTemplateNotFound", message: `Remediation template not found: ${message}` };
}

function invalid(message: string): TemplateProblem {
  return { reason: "RemediationTemplateInvalid", message: `Remediation template is invalid: ${message}` };
}
