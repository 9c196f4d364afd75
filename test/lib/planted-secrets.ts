import { base64 } from "./secret-forms/form.ts";
import { SECRET_FORMS } from "./secret-forms/all.ts";

// Secrets for tests of the support bundle. No bundle may contain them.

export { base64 };

/** Secrets by their place. None may be in a bundle, in clear text or in base64. */
export const PLANTED = {
  annotationOfOthers: "plain-words-of-others",
  lastApplied: "Applied-4711",
  managedFields: "f:Managed-4712",
  podVariable: "Variable-4713!",
  podVariableUnnamed: "unnamed-variable-value",
  podArgument: "Argument-4714",
  deploymentVariable: "Deployment-4715",
  nodeAnnotation: "node-annotation-value",
  addressPassword: "Userinfo-4716",
  addressWithSlash: "User/info@4717",
  conditionMessage: "Message-4718",
  eventUrl: "EventUrl-4719",
  eventBearer: "EventBearer4720abcdef",
  eventSentence: "Sentence-4721",
  pauseReason: "Pause-4722",
  secretData: "SecretData-4723",
  kubeconfigToken: "Kubeconfig-4724",
  logJsonPassword: "LogJson-4725",
  logNestedJson: 'Nested-"4726',
  logKeyValue: "KeyValue-4727",
  logQuotedWithBlanks: "quoted with Blanks-4728",
  logHeader: "session=Header4729; other=Cookie4730",
  logBasic: base64("admin:Basic-4731"),
  logBasicUnnamed: base64("fencing:Unnamed-4732"),
  logJwt: "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiI0NzMzIn0.c2lnbmF0dXJlNDczMw",
  logBootstrapToken: "abc473.0123456789abcdef",
  logGitHub: "ghp_0123456789abcdefABCDEF47350123456789",
  logIpmitool: "Ipmi-4736",
  logFlag: "Flag-4737",
  logYaml: "yaml Value-4738",
  logHash: "$6$salt4739$Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4",
  logRandom: "wJa1rXUtnFEMIxK7MDENGxbPxRfiCYEX4M1PLEKEYz0Qw9",
  metricsLabel: "Metrics-4741",
  previousLog: "Previous-4742",
  queryParameter: "Query4743%2F",
  labelOfMachine: "Spec-4744",
  // Some BMCs use the id of a session as its token.
  redfishSessionId: "SessionId4748abcd",
  redfishSessionIdInLines: "SessionId4749abcd",
  redfishToken: "AuthToken4750abcd",
  redfishTokenInHeaders: "AuthToken4751abcd",
} as const;
/** Lines of a private key. */
export const KEY_LINES = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC4745", "shorttail4746=="];

/** Lines of a log, most of them with a secret. */
export const LOG = [
  JSON.stringify({ level: "info", msg: "the agent leads", node: "worker-1" }),
  JSON.stringify({ level: "debug", config: { bmc: { user: "root", password: PLANTED.logJsonPassword } } }),
  JSON.stringify({ level: "debug", body: JSON.stringify({ Password: PLANTED.logNestedJson, UserName: "root" }) }),
  `dial failed: user=root password=${PLANTED.logKeyValue}, trying again`,
  `options: { "password" : "${PLANTED.logQuotedWithBlanks}", "retries": 3 }`,
  `> Cookie: ${PLANTED.logHeader}`,
  `> Authorization: Basic ${PLANTED.logBasic}`,
  `the BMC was sent ${PLANTED.logBasicUnnamed} twice`,
  `token review of ${PLANTED.logJwt} failed`,
  `joined with ${PLANTED.logBootstrapToken}`,
  `cloned with ${PLANTED.logGitHub}`,
  `exec: ipmitool -I lanplus -H 10.0.0.3 -U admin -P ${PLANTED.logIpmitool} power status`,
  `exec: fence --api-token ${PLANTED.logFlag} --node worker-1`,
  `bmcPassword: ${PLANTED.logYaml}`,
  `shadow entry root:${PLANTED.logHash}:19000`,
  `uploaded with ${PLANTED.logRandom}`,
  `env dump: ${PLANTED.podVariable} ${PLANTED.deploymentVariable}`,
  `GET https://bmc-1.example/redfish/v1?X-Auth-Token=${PLANTED.queryParameter}&x=1`,
  JSON.stringify({ answer: { Id: PLANTED.redfishSessionId, Name: "User Session", Token: PLANTED.redfishToken } }),
  JSON.stringify({ answer: { "@odata.id": `/redfish/v1/SessionService/Sessions/${PLANTED.redfishSessionId}` } }),
  ...JSON.stringify(
    {
      Id: PLANTED.redfishSessionIdInLines,
      "@odata.id": `/redfish/v1/SessionService/Sessions/${PLANTED.redfishSessionIdInLines}`,
    },
    undefined,
    2,
  ).split("\n"),
  `< HTTP/1.1 201 Created, location: /redfish/v1/Sessions/1, x-auth-token: ${PLANTED.redfishTokenInHeaders}`,
  "-----BEGIN PRIVATE KEY-----",
  ...KEY_LINES,
  "-----END PRIVATE KEY-----",
  ...SECRET_FORMS.flatMap(([, text]) => text.split("\n")),
  "the last line, after everything",
];

/** The places of the planted secrets that a text contains in clear text, in base64, in JSON, or in part. */
export function secretsIn(text: string): string[] {
  const formed = SECRET_FORMS.flatMap(([name, , secrets]) => secrets.map((secret) => [name, secret] as const));
  const all = [...formed, ...Object.entries(PLANTED), ...KEY_LINES.map((line) => ["key", line] as const)];
  return all.flatMap(([where, secret]) => {
    const forms = [
      secret,
      base64(secret),
      JSON.stringify(secret).slice(1, -1),
      ...secret.split(/[; ]/).filter((word) => /\d{4}/.test(word)),
    ];
    return forms.some((form) => text.includes(form)) ? [where] : [];
  });
}
