/** The secrets in `PLANTED_TEXTS`. */
export const PLANTED = [
  "Userinfo-1",
  "Us/er@info-2",
  "YWRtaW46QmFzaWMtMw",
  "Nested-4",
  "KeyValue-5",
  "Sentence-6!",
  "Ipmi-7",
  "Applied-8",
  "Token-9",
] as const;

/** Realistic lines of logs and objects, each with a secret. */
export const PLANTED_TEXTS: readonly string[] = [
  '{"msg":"no answer","address":"redfish://admin:Userinfo-1@bmc-1.example"}',
  "probing ipmi://admin:Us/er@info-2@bmc-2.example",
  "> Authorization: Basic YWRtaW46QmFzaWMtMw",
  String.raw`{"body":"{\"Password\":\"Nested-4\",\"UserName\":\"root\"}"}`,
  "dial failed: user=root password=KeyValue-5, trying again",
  "the login with password Sentence-6! failed",
  "exec: ipmitool -I lanplus -H 10.0.0.3 -U admin -P Ipmi-7 power status",
  '"kubectl.kubernetes.io/last-applied-configuration": "{\\"token\\":\\"Applied-8\\"}",',
  "> X-Auth-Token: Token-9",
];
