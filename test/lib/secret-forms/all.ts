import type { SecretForm } from "./form.ts";
import { blocksForms } from "./blocks.ts";
import { languagesForms } from "./languages.ts";
import { markupForms } from "./markup.ts";
import { moreForms } from "./more.ts";
import { reportsForms } from "./reports.ts";
import { requestsForms } from "./requests.ts";
import { servicesForms } from "./services.ts";
import { sentencesForms } from "./sentences.ts";

const KINDS = [
  requestsForms,
  blocksForms,
  markupForms,
  languagesForms,
  sentencesForms,
  moreForms,
  servicesForms,
  reportsForms,
];
const formsOf = (secret: string): SecretForm[] => KINDS.flatMap((kind) => kind(secret));

/** Forms of secrets in logs and messages, each with another secret. */
export const SECRET_FORMS: readonly SecretForm[] = formsOf("").map(([name], index) => {
  const form = formsOf(`Zebra${4_800 + index}Quux`)[index];
  if (form === undefined) throw new Error(name);
  return form;
});
