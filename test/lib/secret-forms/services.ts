import type { SecretForm } from "./form.ts";
import { base64 } from "./form.ts";

/** Tokens of services, in lines that contain no other sign of a secret. */
const TOKENS = [
  "dckr_pat_AbCdEfGh0123456789IjKlMn",
  "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
  "glrt-AbCdEfGhIj0123456789",
  "glptt-0123456789abcdef0123456789abcdef01234567",
  "rk_live_AbCdEfGhIj0123456789",
  "rk_test_AbCdEfGhIj0123456789",
  "sk_live_AbCdEfGhIj0123456789",
  "s.AbCdEfGhIj0123456789KlMn",
  "hvs.CAESIJ0123456789abcdef",
  "hvr.AAAAAQ0123456789abcdef",
];

/** Tokens of services and sessions, and logins that programs report. @param S the secret. */
export function servicesForms(S: string): SecretForm[] {
  const keystore = Buffer.from(`feedfeed0000000200000001`, "hex").toString("base64") + base64(S);
  return [
    ...TOKENS.map((token): SecretForm => [`bare ${token.slice(0, 8)}`, `pulled by ${token} at 10:00`, [token]]),
    ["privKey", JSON.stringify({ privKey: S, priv_key: S, PRIV_KEY: S }), [S]],
    ["priv_key text", `priv_key=${S}\nprivKey: ${S}`, [S]],
    ["pagerduty", JSON.stringify({ routing_key: S, integrationKey: S }), [S]],
    ["pagerduty text", `routing_key: ${S}\nintegrationKey=${S}`, [S]],
    ["keystore", `keystore: ${keystore}\nkeyStore=${base64("pkcs12" + S)}`, [keystore, base64("pkcs12" + S)]],
    ["keystore alone", `read ${keystore} of 32 bytes`, [keystore]],
    ["keystore field", JSON.stringify({ keystore: S, "tls.keyStore": S }), [S]],
    ["python auth tuple", `requests.get(url, auth=('root', '${S}'), verify=False)`, [S]],
    ["python auth object", `requests.get(url, auth=HTTPBasicAuth("root", "${S}"))`, [S]],
    ["credentials in a sentence", `credentials root:${S} rejected`, [S]],
    ["credentials in a sentence, plain", "the BMC refuses the credentials root:zebraquux", ["zebraquux"]],
    ["login as", `login as admin/${S} failed`, [S]],
    ["login as, plain", "login as admin/zebraquux failed", ["zebraquux"]],
    ["logged in with", `logged in with root:${S}`, [S]],
    [
      "cloud-init chpasswd",
      `#cloud-config\nchpasswd:\n  expire: false\n  list: |\n    root:${S}\n    ann:x${S}\n`,
      [S],
    ],
    ["cloud-init chpasswd list", `chpasswd:\n  list:\n    - root:${S}\n    - ann:x${S}\nssh: true`, [S]],
    ["cloud-init chpasswd users", `chpasswd:\n  users:\n  - {name: root, text: ${S}}\n`, [S]],
    ["cloud-init chpasswd line", `chpasswd: {expire: false, list: ["root:${S}", "ann:x${S}"]}`, [S]],
    ["prompt", `Enter password for root:\n${S}\nlogged in`, [S]],
    ["prompt sudo", `[sudo] password for ann: \n${S}\n`, [S]],
    ["prompt key", `Enter passphrase for key '/home/admin/.ssh/id':\n${S}\n`, [S]],
    ["passwort", `Passwort: ${S}\nBMC_PASSWORT=${S}\nBMCPASSWORT=${S}`, [S]],
    ["passwort field", JSON.stringify({ Passwort: S, bmcPasswort: S, BMCPASSWORT: S }), [S]],
    ["passwort sentence", `Das Passwort lautet ${S}, das Passwort für root ist ${S}`, [S]],
    ["session path", `Location: /redfish/v1/SessionService/Sessions/${S}`, [S]],
    ["session members", `DELETE https://10.0.0.3/redfish/v1/SessionService/Sessions/Members/${S}: 404`, [S]],
    ["session token", `session token ${S} expired; the session token is ${S}`, [S]],
    ["session fields", JSON.stringify({ SessionToken: S, sessionId: S, XAuthToken: S }), [S]],
  ];
}
