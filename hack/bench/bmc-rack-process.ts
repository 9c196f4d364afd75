import { Secret } from "../../src/runtime/secret.ts";
import { systemClock as clock, systemRandom as random } from "../../src/runtime/system.ts";
import { startIpmiMock } from "../ipmi-mock/server.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import { createRack } from "../rack/rack.ts";
import type { Rack } from "../rack/rack.ts";
import { startRedfishMock } from "../redfish-mock/server.ts";
import type { BmcAt, BmcReport, RackAnswer, RackHost, RackRequest } from "./bmc-rack.ts";
import { PASSWORD, USERNAME } from "./bmc-rack.ts";

// The child process of bmc-rack.ts. It receives over IPC which hosts to simulate, and reports what their BMCs have
// received.

/** One BMC: its address, and what it has received since its start. */
interface Front {
  at: BmcAt;
  seen(): Omit<BmcReport, "name" | "offAtMs">;
}

const offAtMs = new Map<string, number>();
/** What the BMCs had received at the last reset. Later reports contain only what came after it. */
const before = new Map<string, Omit<BmcReport, "name" | "offAtMs">>();
let rack: Rack | undefined;
let fronts: Front[] = [];

process.on("message", (request: RackRequest) => {
  answer(request).then(
    (message) => process.send?.(message),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on("disconnect", () => process.exit(0));

async function answer(request: RackRequest): Promise<RackAnswer> {
  if ("start" in request) return start(request.start);
  if (request.ask === "report") return { reports: fronts.map(reportOf) };
  for (const host of rack?.hosts ?? []) host.order("On");
  while (rack?.hosts.some((host) => host.power !== "On") === true)
    await new Promise((resolve) => setTimeout(resolve, 20));
  offAtMs.clear();
  for (const front of fronts) before.set(front.at.name, front.seen());
  return { reset: true };
}

async function start(hosts: RackHost[]): Promise<RackAnswer> {
  const timing = { powerOnDelayMs: 0, bootMs: 100 };
  const created = createRack({ clock, random, hosts: hosts.map((host) => ({ ...timing, ...host })) });
  rack = created;
  created.subscribe((event) => {
    if (event.type === "powerChanged" && event.power === "Off") offAtMs.set(event.host, event.atMs);
  });
  const authority = await createCertificateAuthority(clock, "bench CA");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const login = { username: USERNAME, password: new Secret(PASSWORD) };
  fronts = await Promise.all(
    hosts.map(async ({ name, protocol }): Promise<Front> => {
      if (protocol === "ipmi") {
        const mock = await startIpmiMock({ rack: created, clock, random, host: name, ...login });
        return {
          at: { name, port: mock.port, address: mock.address },
          seen: () => ({
            requests: mock.requests.length,
            powerReadsAtMs: mock.requests.filter(({ step }) => step === "GetChassisStatus").map(({ atMs }) => atMs),
            logins: mock.requests.filter(({ step }) => step === "RAKP3").length,
            sessions: mock.sessionCount,
          }),
        };
      }
      const secure = protocol === "redfish+tls" ? { tls } : {};
      const mock = await startRedfishMock({ rack: created, clock, random, hosts: [name], ...login, ...secure });
      const path = mock.systemPath(name);
      return {
        at: { name, port: Number(new URL(mock.url).port), address: `${mock.url}${path}` },
        seen: () => ({
          requests: mock.requests.length,
          powerReadsAtMs: mock.requests
            .filter((request) => request.method === "GET" && request.path === path)
            .map(({ atMs }) => atMs),
          logins: mock.requests.filter((request) => request.method === "POST" && request.path.endsWith("/Sessions"))
            .length,
          sessions: mock.sessionCount,
        }),
      };
    }),
  );
  return { bmcs: fronts.map(({ at }) => at), sha256Fingerprint: tls.sha256Fingerprint };
}

function reportOf(front: Front): BmcReport {
  const { name } = front.at;
  const now = front.seen();
  const start = before.get(name);
  const off = offAtMs.get(name);
  return {
    name,
    ...(off !== undefined && { offAtMs: off }),
    requests: now.requests - (start?.requests ?? 0),
    powerReadsAtMs: now.powerReadsAtMs.slice(start?.powerReadsAtMs.length ?? 0),
    logins: now.logins - (start?.logins ?? 0),
    sessions: now.sessions,
  };
}
