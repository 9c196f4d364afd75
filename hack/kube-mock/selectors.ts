import { badRequest } from "./api-error.ts";
import type { ApiObject } from "./json.ts";

export type Predicate = (object: ApiObject) => boolean;

const KEY = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;

/**
 * Reads a label selector: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, `a>1`, `a<1`, joined by
 * commas.
 *
 * @returns undefined for an empty one, which fits everything.
 */
export function parseLabelSelector(text: string): Predicate | undefined {
  if (text.trim() === "") return undefined;
  const requirements = splitOutsideParentheses(text).map(parseRequirement);
  return ({ metadata }) => requirements.every((fits) => fits(metadata.labels ?? {}));
}

type Requirement = (labels: Readonly<Record<string, string>>) => boolean;

function parseRequirement(text: string): Requirement {
  const set = /^([^\s!=<>()]+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(text);
  if (set !== null) {
    const key = checkKey(set[1] ?? "");
    const values = new Set((set[3] ?? "").split(",").map((value) => checkValue(value.trim())));
    return set[2] === "in"
      ? (labels) => labels[key] !== undefined && values.has(labels[key])
      : (labels) => labels[key] === undefined || !values.has(labels[key]);
  }
  const comparison = /^([^\s!=<>()]+)\s*(==|=|!=|>|<)\s*([^\s!=<>()]*)$/.exec(text);
  if (comparison !== null) {
    const key = checkKey(comparison[1] ?? "");
    const value = checkValue(comparison[3] ?? "");
    switch (comparison[2]) {
      case "!=":
        return (labels) => labels[key] !== value;
      case ">":
      case "<":
        return compareNumbers(key, comparison[2], value);
      default:
        return (labels) => labels[key] === value;
    }
  }
  const presence = /^(!?)\s*([^\s!=<>()]+)$/.exec(text);
  if (presence === null) throw badRequest(`unable to parse requirement: ${text}`);
  const key = checkKey(presence[2] ?? "");
  return presence[1] === "!" ? (labels) => labels[key] === undefined : (labels) => labels[key] !== undefined;
}

function compareNumbers(key: string, operator: string, text: string): Requirement {
  const limit = integerOf(text);
  if (limit === undefined) throw badRequest(`unable to parse requirement: ${text} is not an integer`);
  return (labels) => {
    const value = integerOf(labels[key] ?? "");
    return value !== undefined && (operator === ">" ? value > limit : value < limit);
  };
}

function integerOf(text: string): number | undefined {
  return /^-?\d+$/.test(text) ? Number(text) : undefined;
}

function checkKey(key: string): string {
  if (!KEY.test(key)) throw badRequest(`unable to parse requirement: key: Invalid value: "${key}"`);
  return key;
}

function checkValue(value: string): string {
  if (!VALUE.test(value)) throw badRequest(`unable to parse requirement: values: Invalid value: "${value}"`);
  return value;
}

function splitOutsideParentheses(text: string): string[] {
  return text.split(/,(?![^(]*\))/).map((part) => part.trim());
}

/** Functions that read the selectable fields of a kind. */
export type SelectableFields = Readonly<Record<string, (object: ApiObject) => string>>;

/** Selectable fields of every kind. */
export const COMMON_FIELDS: SelectableFields = {
  "metadata.name": ({ metadata }) => metadata.name,
  "metadata.namespace": ({ metadata }) => metadata.namespace ?? "",
};

/**
 * Reads a field selector: `a=b`, `a==b`, `a!=b`, joined by commas.
 *
 * @returns undefined for an empty one, which fits everything.
 */
export function parseFieldSelector(text: string, fields: SelectableFields): Predicate | undefined {
  if (text === "") return undefined;
  const tests = text.split(",").map((part): Predicate => {
    const match = /^([^!=]+)(==|=|!=)(.*)$/.exec(part);
    if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
    const [, path = "", operator, value = ""] = match;
    const read = Object.hasOwn(fields, path) ? fields[path] : undefined;
    if (read === undefined) throw badRequest(`field label not supported: ${path}`);
    return operator === "!=" ? (object) => read(object) !== value : (object) => read(object) === value;
  });
  return (object) => tests.every((fits) => fits(object));
}
