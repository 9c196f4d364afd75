import { createSocket } from "node:dgram";
import type { RemoteInfo, Socket } from "node:dgram";
import type { CipherSuiteId } from "../../src/bmc/interface/cipher-suites.ts";
import type { Clock, Timer } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import { Secret } from "../../src/runtime/secret.ts";
import type { Bmc } from "../rack/bmc.ts";
import type { Rack } from "../rack/rack.ts";
import { FaultBook } from "./faults.ts";
import type { FaultAction, FaultRule, Step } from "./faults.ts";
import { toDatagram } from "./reply.ts";
import { IpmiService } from "./service.ts";
import type { Task } from "./service.ts";

export interface IpmiMockOptions {
  rack: Rack;
  clock: Clock;
  random: Random;
  /** The host whose BMC this is. */
  host: string;
  /** 0, any free port, by default. It listens on 127.0.0.1. */
  port?: number;
  /** `admin` by default. */
  username?: string;
  /** `password` by default. */
  password?: Secret;
  /** The BMC's own key (K_G): none by default. */
  bmcKey?: Secret;
  /** Highest privilege level of that user, 2 to 4 (administrator): 4 by default. */
  privilegeMax?: number;
  /** Cipher suites that the BMC supports: 3 and 17 by default. */
  suites?: readonly CipherSuiteId[];
  /** Size of the session table: 4 by default. */
  sessionsMax?: number;
}

/** One request as the mock understood it. */
export interface LoggedRequest {
  /** Wall-clock time of its arrival, milliseconds since the epoch. */
  readonly atMs: number;
  readonly step: Step;
  readonly data: readonly number[];
}

export interface IpmiMock {
  /** For example, `ipmi://127.0.0.1:40123`. */
  readonly address: string;
  readonly port: number;
  /**
   * Adds a fault, and returns a function that removes it. If several faults match a request, the newest one applies.
   */
  addFault(rule: FaultRule): () => void;
  clearFaults(): void;
  /** Requests received, oldest first, without repeated and damaged datagrams. */
  readonly requests: readonly LoggedRequest[];
  /** The steps of `requests`. */
  steps(): Step[];
  /** Datagrams received since the start. */
  readonly datagramCount: number;
  /** The number of sessions that are open or being opened. */
  readonly sessionCount: number;
  close(): Promise<void>;
}

/** The log keeps at most this many requests, and drops the oldest. */
const REQUESTS_MAX = 10_000;

/**
 * Starts the simulated BMC of one host with IPMI 2.0. Faults of the protocol are injected here, and wrong states in
 * `Bmc`.
 */
export async function startIpmiMock(options: IpmiMockOptions): Promise<IpmiMock> {
  const mock = new MockServer(options);
  await mock.listen(options.port ?? 0);
  return mock;
}

class MockServer implements IpmiMock {
  readonly requests: LoggedRequest[] = [];
  port = 0;
  datagramCount = 0;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #bmc: Bmc;
  readonly #service: IpmiService;
  readonly #faults = new FaultBook();
  readonly #socket: Socket;
  readonly #timers = new Set<Timer>();
  readonly #unsubscribe: () => void;
  #closed: Promise<void> | undefined;
  #lastAnswer: Buffer | undefined;
  #heldBack: Buffer | undefined;

  constructor(options: IpmiMockOptions) {
    const { rack, clock, random, host } = options;
    this.#clock = clock;
    this.#random = random;
    this.#bmc = rack.bmc(host);
    this.#service = new IpmiService({
      clock,
      random,
      bmc: this.#bmc,
      username: options.username ?? "admin",
      password: options.password ?? new Secret("password"),
      bmcKey: options.bmcKey,
      privilegeMax: options.privilegeMax ?? 4,
      suites: options.suites ?? [3, 17],
      sessionsMax: options.sessionsMax ?? 4,
    });
    this.#unsubscribe = rack.subscribe((event) => {
      if (event.type === "bmcRestarted" && event.host === host) this.#service.sessions.clear();
    });
    this.#socket = createSocket("udp4");
    this.#socket.on("message", (datagram, from) => this.#receive(datagram, from));
  }

  get address(): string {
    return `ipmi://127.0.0.1:${this.port}`;
  }

  get sessionCount(): number {
    return this.#service.sessions.size;
  }

  steps(): Step[] {
    return this.requests.map(({ step }) => step);
  }

  addFault(rule: FaultRule): () => void {
    return this.#faults.add(rule);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.once("error", reject);
      this.#socket.bind(port, "127.0.0.1", () => {
        // From now on an error means that a client is gone, which is not an error of the mock.
        this.#socket.off("error", reject).on("error", () => undefined);
        this.port = this.#socket.address().port;
        resolve();
      });
    });
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#unsubscribe();
      for (const timer of this.#timers) timer.cancel();
      this.#socket.close(() => resolve());
    });
    return this.#closed;
  }

  /** This socket cannot send a refusal over UDP, so a BMC that is not up does not answer. */
  #receive(datagram: Buffer, from: RemoteInfo): void {
    this.datagramCount += 1;
    this.#arrive(datagram, from, "now");
  }

  /** @param when whether the datagram comes now or after a delay of the network. */
  #arrive(datagram: Buffer, from: RemoteInfo, when: "now" | "late"): void {
    if (this.#bmc.reachability !== "up") return;
    const task = this.#service.understand(datagram);
    if (task === undefined) return;
    const fault = when === "late" ? undefined : this.#faults.take(task.step);
    if (fault?.type === "loseRequest" || this.#happens(fault, "lossPercent")) return;
    if (fault?.type === "lateRequest") {
      this.#later(fault.delayMs, () => this.#arrive(datagram, from, "late"));
      return;
    }
    if (fault?.type === "restartBmc" && fault.effect === "none") {
      this.#bmc.restart(fault.downMs);
      return;
    }
    if (!task.accept()) return;
    this.requests.push({ atMs: this.#clock.nowMs(), step: task.step, data: task.data });
    if (this.requests.length > REQUESTS_MAX) this.requests.shift();
    this.#carryOut(task, fault, from);
    // The second copy has a sequence number that was received before, or the handshake is already in a later state.
    const isDoubled = fault?.type === "duplicateRequest" || this.#happens(fault, "duplicatePercent");
    const again = isDoubled ? this.#service.understand(datagram) : undefined;
    if (again?.accept() === true) this.#carryOut(again, fault, from);
  }

  /** Whether the bad network affects this datagram. */
  #happens(fault: FaultAction | undefined, what: "lossPercent" | "duplicatePercent"): boolean {
    return fault?.type === "badNetwork" && this.#random.next() * 100 < fault[what];
  }

  #later(delayMs: number, work: () => void): void {
    const timer = this.#clock.schedule(delayMs, () => {
      this.#timers.delete(timer);
      work();
    });
    this.#timers.add(timer);
  }

  #carryOut(task: Task, fault: FaultAction | undefined, from: RemoteInfo): void {
    const reply = task.run(fault);
    if (fault?.type === "restartBmc") {
      this.#bmc.restart(fault.downMs);
      return;
    }
    if (reply === undefined || fault?.type === "loseAnswer" || this.#happens(fault, "lossPercent")) return;
    const answer = toDatagram(reply, fault, this.#random);
    this.#answer(answer, fault, (bytes) => this.#socket.send(bytes, from.port, from.address));
  }

  #answer(answer: Buffer, fault: FaultAction | undefined, send: (datagram: Buffer) => void): void {
    const previous = this.#lastAnswer;
    this.#lastAnswer = answer;
    if (fault?.type === "reorder") {
      this.#heldBack = answer;
      return;
    }
    if (fault?.type === "delay") {
      this.#later(fault.delayMs, () => send(answer));
      return;
    }
    if (fault?.type === "replay" && previous !== undefined) send(previous);
    send(answer);
    if (fault?.type === "duplicateAnswer" || this.#happens(fault, "duplicatePercent")) send(answer);
    if (this.#heldBack === undefined) return;
    send(this.#heldBack);
    this.#heldBack = undefined;
  }
}
