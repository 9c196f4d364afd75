import type { SecretForm } from "./form.ts";

/** Answers of BMCs, notes of administrators, and commands that they have typed. @param S the secret. */
export function reportsForms(S: string): SecretForm[] {
  const withAmpersand = `${S}&b7x`;
  return [
    ["community in a sentence", `community ${S} rejected by the PDU`, [S]],
    ["K_G", `K_G=0x${S}\nbmcKey: ${S}`, [S]],
    ["K_G fields", JSON.stringify({ K_G: S, kg: S, "ironfence.io/bmc-login": `root:${S}` }), [S]],
    ["pass phrase", `pass phrase: ${S}`, [S]],
    ["login slash", `BMC login root / ${S} failed; Login failed for root/${S}; login for user admin:${S}`, [S]],
    ["with pass", `tried user root with pass ${S}`, [S]],
    ["pw in brackets", `paused by ann (pw ${S})`, [S]],
    ["will be", `the new password for ADMIN will be ${S}`, [S]],
    ["from to", `changed password from ${S} to x${S}`, [S]],
    ["SessionToken", `SessionToken ${S} is over`, [S]],
    ["one-time password", `otp=${S}`, [S]],
    ["session in a fragment", `https://bmc/redfish/v1#sid=${S}`, [S]],
    ["websocket", `Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.${S}`, [S]],
    ["from literal", `kubectl create secret generic x --from-literal=bmc=${S} --from-literal bmc=${S}`, [S]],
    ["podman login", `podman login -u a -p ${S} reg; docker login -p ${S} reg`, [S]],
    ["echo to passwd", `echo ${S} | passwd --stdin root`, [S]],
    ["echo to cryptsetup", `echo -n ${S} | cryptsetup open /dev/sda1 x`, [S]],
    ["printf to standard input", `printf ${S} | bmctool set --stdin`, [S]],
    ["ampersand", `password=${withAmpersand} user=root`, [withAmpersand, "&b7x"]],
    ["ampersand in a query", `GET /login?password=${S}&user=root`, [S]],
  ];
}
