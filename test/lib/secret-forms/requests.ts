import type { SecretForm } from "./form.ts";
import { base64, keyOf } from "./form.ts";

/** Requests of programs, their headers, and keys in files. @param S the secret. */
export function requestsForms(S: string): SecretForm[] {
  const { pem, pemLines } = keyOf(S);
  return [
    [
      "digest response",
      `Authorization: Digest username="admin", realm="iDRAC", nonce="dcd98b7102dd", uri="/redfish/v1", response="6629fae49393a05397450978507c4ef1", opaque="5ccc069c403ebaf9f0171e9517f40e41"`,
      ["6629fae49393a05397450978507c4ef1"],
    ],
    [
      "digest in json log",
      JSON.stringify({
        msg: "sent",
        headers: { authorization: `Digest username="admin", response="6629fae49393a05397450978507c4ef1"` },
      }),
      ["6629fae49393a05397450978507c4ef1"],
    ],
    [
      "digest quoted",
      `req header "Authorization": "Digest username=\\"admin\\", response=\\"6629fae49393a05397450978507c4ef1\\""`,
      ["6629fae49393a05397450978507c4ef1"],
    ],
    [
      "digest without header",
      `Digest username="admin", realm="x", nonce="abc", response="6629fae49393a05397450978507c4ef1"`,
      ["6629fae49393a05397450978507c4ef1"],
    ],
    ["header array json", JSON.stringify({ headers: ["X-Auth-Token", S, "Accept", "*/*"] }), [S]],
    [
      "header array lower",
      JSON.stringify({ rawHeaders: ["authorization", `Basic ${base64("a:" + S)}`, "cookie", `session=${S}`] }),
      [S, base64("a:" + S)],
    ],
    [
      "header pairs",
      JSON.stringify({
        headers: [
          ["x-auth-token", S],
          ["accept", "x"],
        ],
      }),
      [S],
    ],
    ["header array text", `headers: [ 'X-Auth-Token', '${S}', 'accept', 'x' ]`, [S]],
    ["header go map", `map[Accept:[*/*] X-Auth-Token:[${S}] Authorization:[Bearer ${S}]]`, [S]],
    ["header object with array", JSON.stringify({ "X-Auth-Token": [S], "set-cookie": [`sid=${S}; Path=/`] }), [S]],
    ["curl -H", `curl -k -H 'X-Auth-Token: ${S}' https://bmc`, [S]],
    ["curl -H args", JSON.stringify({ args: ["curl", "-H", `X-Auth-Token: ${S}`, "https://bmc"] }), [S]],
    ["curl -H auth", `curl -H "Authorization: Bearer ${S}" https://bmc`, [S]],
    ["encrypted pem", pem("ENCRYPTED PRIVATE KEY").join("\n"), pemLines],
    [
      "rsa encrypted pem",
      pem("RSA PRIVATE KEY", ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,ABCDEF0123", ""]).join("\n"),
      pemLines,
    ],
    [
      "pem in json \\n",
      JSON.stringify({
        msg: pem("RSA PRIVATE KEY", ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,ABCDEF0123", ""]).join("\n"),
      }),
      pemLines,
    ],
    ["pem escaped in text", `key is "${pem("PRIVATE KEY").join("\\n")}" here`, pemLines],
    [
      "pem indented",
      `  tls.key: |\n${pem("EC PRIVATE KEY")
        .map((l) => "    " + l)
        .join("\n")}`,
      pemLines,
    ],
    ["pem openssh", pem("OPENSSH PRIVATE KEY").join("\n"), pemLines],
    ["pem pgp", pem("PGP PRIVATE KEY BLOCK", ["Version: GnuPG", ""]).join("\n"), pemLines],
    [
      "pem with brace line",
      `{"key": "-----BEGIN PRIVATE KEY-----\n${pemLines.join("\n")}\n-----END PRIVATE KEY-----"}`,
      pemLines,
    ],
    [
      "putty key",
      `PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPublic-Lines: 2\nAAAAC3NzaC1lZDI1NTE5AAAAIKpub\nPrivate-Lines: 1\nAAAAIJYjRTzNK4711Zebraquuxprivate\nPrivate-MAC: 0f3a`,
      ["AAAAIJYjRTzNK4711Zebraquuxprivate"],
    ],
    [
      "pem ts per line",
      pem("PRIVATE KEY")
        .map((l) => "2026-11-22T10:00:00Z " + l)
        .join("\n"),
      pemLines,
    ],
  ];
}
