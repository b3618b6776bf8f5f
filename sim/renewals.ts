import { type Random, randomOf } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { nodeId } from "@forage/identity";
import type { IssuedCertificate } from "@forage/identity/ca";
import type { TlsMaterial } from "@forage/identity/tls-server";
import type { AgentServiceClient, RenewRequest, RenewResponse } from "@forage/proto/forage/agent/v1/agent";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { LinkError } from "../agent/src/link/link-error.ts";
import { IdentityFiles, type NodeIdentity, type RenewalKey } from "../agent/src/link/node-identity.ts";
import { renewIdentity } from "../agent/src/link/renew.ts";
import { type EnrollOptions, isRevoked, renew } from "../coordinator/src/link/enroll.ts";
import { decodeRecord, encodeRecord } from "../coordinator/src/model/codec.ts";
import { nodeKey } from "../coordinator/src/model/keys.ts";
import { toTimestamp } from "../coordinator/src/model/timestamp.ts";
import { keepReissued } from "../coordinator/src/reissue.ts";
import type { NodeEntry } from "../coordinator/src/state/entries.ts";
import { createMemoryStore, type Store, StoreError } from "../coordinator/src/store/index.ts";
import type { Clock } from "../coordinator/src/time/clock.ts";
import { type Outcome, outcomeOf } from "./fleet/outcome.ts";
import { simTime } from "./fleet/sim-time.ts";
import { Trace } from "./fleet/trace.ts";
import { Violation } from "./fleet/violation.ts";

const HOUR_MS = 3_600_000;
const LIFE_MS = 30 * 24 * HOUR_MS;
/** The same as in the real authority. */
const BACKDATE_MS = 2 * HOUR_MS;
const NODE = nodeId("n1");
const ATTEMPTS = 30;
/** The time within which the certificate of the port must be valid again once the clock and the authority are right. */
const PATIENCE_MS = 150_000;

/** The faults of one attempt. Faults of the network concern the call. */
interface Faults {
  readonly requestLost: boolean;
  readonly answerLost: boolean;
  readonly coordinatorDiskFull: boolean;
  readonly agentDiskFull: boolean;
  readonly authorityAway: boolean;
}

const NONE: Faults = {
  ...{ requestLost: false, answerLost: false, coordinatorDiskFull: false, agentDiskFull: false },
  authorityAway: false,
};

/**
 * Plays renewals of a node's certificate and of the port's own by the real code of both sides, with faults of the
 * network, the disks, the authority and the coordinator's wall clock. The node's certificate must be accepted at every
 * moment, and the port's must be valid soon after the faults.
 */
export async function simulateRenewals({
  seed,
  echo,
}: {
  readonly seed: number;
  readonly echo?: (line: string) => void;
}): Promise<Outcome> {
  const time = simTime();
  const trace = new Trace({ nowMs: time.nowMs, keep: 60, ...(echo && { echo }) });
  const play = new Play(time, randomOf(seed), (what) => trace.add("world", what));
  let violation: Violation | undefined;
  const world = {
    time,
    get violation() {
      return violation;
    },
    get writes() {
      return play.writes;
    },
    blame: (what: string) => {
      violation = new Violation(what);
    },
    end: () => play.end(),
  };
  return outcomeOf({ seed, world, trace, play: () => play.run(), where: "renewals" });
}

class Play {
  writes = 0;
  readonly #time: VirtualClock;
  readonly #random: Random;
  readonly #note: (what: string) => void;
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #files: SimulatedFiles;
  #faults: Faults = NONE;
  #serial = 0;
  #entry: NodeEntry | undefined;
  /** The error of the coordinator's wall clock. */
  #wrongMs = 0;
  #port: SimCertificate | undefined;
  #soundSinceMs = 0;
  #cancelReissue = (): void => {};

  constructor(time: VirtualClock, random: Random, note: (what: string) => void) {
    this.#time = time;
    this.#random = random;
    this.#note = note;
    const { monotonicMs, schedule } = time;
    this.#clock = { nowMs: () => time.nowMs() + this.#wrongMs, monotonicMs, schedule };
    this.#store = createMemoryStore({ clock: time });
    this.#files = new SimulatedFiles(() => this.#faults.agentDiskFull);
  }

  async run(): Promise<void> {
    // A coordinator may start with a clock that is fast.
    if (this.#random.chance(0.5)) this.#wrongMs = 24 * HOUR_MS;
    await this.#join();
    const issue = async (): Promise<TlsMaterial> => {
      if (this.#faults.authorityAway) throw new Error("the authority can't be read");
      return { chainPem: textOf(this.#certify()), keyPem: "", clientCaPem: "" };
    };
    const reload = ({ chainPem }: TlsMaterial): void => {
      this.#port = certificateOf(String(chainPem));
    };
    reload(await issue());
    const log = { error: () => this.#note("the port's certificate was not renewed") };
    this.#cancelReissue = keepReissued({ issue, reload, clock: this.#clock, log });
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      this.#befall();
      await this.#time.run(this.#random.below(2 * HOUR_MS));
      this.#checkPort();
      await this.#attempt();
      this.#checkNode();
    }
  }

  end(): void {
    this.#cancelReissue();
  }

  async #join(): Promise<void> {
    const { keyPem } = await this.#files.loadRenewal();
    const issued = this.#certify(keyPem);
    const record = NodeRecord.fromPartial({
      ...{ name: NODE, serials: [issued.serial], hasConnected: true },
      certificateBegins: toTimestamp(issued.notBeforeMs),
    });
    await this.#store.txn([], [{ type: "put", key: nodeKey(NODE), value: encodeRecord(NodeRecord, record) }]);
    await this.#check();
    await this.#files.save(keyPem, textOf(issued), "ca");
    await this.#files.clearRenewal();
  }

  /** Draws the faults until the next attempt. */
  #befall(): void {
    const { chance, below } = this.#random;
    const isFaulty = chance(0.6);
    const may = () => isFaulty && chance(0.4);
    this.#faults = {
      ...{ requestLost: may(), answerLost: may(), coordinatorDiskFull: may(), agentDiskFull: may() },
      authorityAway: may(),
    };
    if (chance(0.2)) this.#wrongMs = chance(0.5) ? 0 : (below(7) - 3) * 24 * HOUR_MS;
    this.#soundSinceMs = this.#time.monotonicMs();
    const names = Object.entries(this.#faults).flatMap(([name, isOn]) => (isOn ? name : []));
    this.#note(`${names.join(", ") || "no fault"}; the coordinator's clock is wrong by ${this.#wrongMs} ms`);
  }

  async #attempt(): Promise<void> {
    try {
      await renewIdentity(this.#client(), this.#files, new AbortController().signal);
      this.#note(`the node has certificate ${this.#files.present.serial}`);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.#note(`no renewal: ${error.message}`);
    }
  }

  #client(): AgentServiceClient {
    const call = (request: RenewRequest, answer: (error: Error | null, response?: RenewResponse) => void) => {
      const lost = new LinkError("UNAVAILABLE", "the connection broke");
      const { serial, notBeforeMs } = this.#files.present;
      const caller = { type: "node", nodeId: NODE, serial, notBeforeMs } as const;
      const context = { method: "", caller, peer: "n1:1", signal: new AbortController().signal };
      const served = this.#faults.requestLost
        ? Promise.reject(lost)
        : renew(request, context, this.#enrollOptions());
      served.then(
        (response) => (this.#faults.answerLost ? answer(lost) : answer(null, response)),
        (error: Error) => answer(error),
      );
      return { cancel: () => {} };
    };
    return { renew: call } as unknown as AgentServiceClient;
  }

  #enrollOptions(): EnrollOptions {
    const txn: Store["txn"] = async (compares, ops) => {
      if (this.#faults.coordinatorDiskFull) throw new StoreError("NO_SPACE", "the disk is full");
      this.writes++;
      return this.#store.txn(compares, ops);
    };
    return {
      store: { txn },
      state: { node: () => this.#entry, reached: () => this.#check() },
      authority: {
        certPem: "ca",
        issueNode: async (_id: string, csr: Uint8Array) => {
          if (this.#faults.authorityAway) throw new Error("the authority can't be read");
          return this.#certify(Buffer.from(csr).toString());
        },
      },
      ...{ clock: this.#clock, history: { refusal: undefined }, lifetimeMs: LIFE_MS, clusterId: "sim" },
      log: { info: () => {} },
    } as unknown as EnrollOptions;
  }

  #certify(key = ""): IssuedCertificate {
    const notBeforeMs = this.#clock.nowMs() - BACKDATE_MS;
    const notAfterMs = this.#clock.nowMs() + LIFE_MS;
    const serial = `${++this.#serial}`;
    const chainPem = JSON.stringify({ serial, key, notBeforeMs, notAfterMs });
    return { chainPem, serial, notBeforeMs, notAfterMs, pin: key, authorityPin: "sim" };
  }

  async #check(): Promise<void> {
    const stored = await this.#store.get(nodeKey(NODE));
    if (stored === undefined) return;
    const record = decodeRecord(NodeRecord, stored.key, stored.value);
    this.#entry = { name: NODE, revision: stored.modRevision, record } as unknown as NodeEntry;
  }

  #checkNode(): void {
    const { serial, notBeforeMs, key } = this.#files.present;
    if (isRevoked(this.#entry, { serial, notBeforeMs }))
      throw new Violation(
        `the node's certificate ${serial} is refused; its record has ${this.#entry?.record.serials}`,
      );
    if (key !== this.#files.key) throw new Violation(`certificate ${serial} is not of the node's key`);
  }

  #checkPort(): void {
    const nowMs = this.#time.nowMs();
    const isSound = this.#wrongMs === 0 && !this.#faults.authorityAway;
    if (!isSound || this.#time.monotonicMs() - this.#soundSinceMs < PATIENCE_MS) return;
    const { notBeforeMs = 0, notAfterMs = 0 } = this.#port ?? {};
    if (nowMs < notBeforeMs || nowMs >= notAfterMs)
      throw new Violation(
        `the port's certificate is valid from ${notBeforeMs} to ${notAfterMs}, and it is ${nowMs}`,
      );
  }
}

/** A certificate without cryptography. */
interface SimCertificate {
  readonly serial: string;
  readonly key: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

function textOf({ chainPem }: Pick<IssuedCertificate, "chainPem">): string {
  return chainPem;
}

function certificateOf(text: string): SimCertificate {
  return JSON.parse(text) as SimCertificate;
}

/** The node's identity on a disk that may be full. Its keys are plain text. */
class SimulatedFiles extends IdentityFiles {
  readonly #isFull: () => boolean;
  #keys = 0;
  #renewal: RenewalKey | undefined;
  #present: { readonly key: string; readonly certificate: SimCertificate } | undefined;

  constructor(isFull: () => boolean) {
    super("/sim");
    this.#isFull = isFull;
  }

  get present(): SimCertificate {
    if (this.#present === undefined) throw new Error("the node has not joined");
    return this.#present.certificate;
  }

  get key(): string | undefined {
    return this.#present?.key;
  }

  override async save(keyPem: string, chainPem: string, caPem: string): Promise<NodeIdentity> {
    this.#write();
    const certificate = certificateOf(chainPem);
    this.#present = { key: keyPem, certificate };
    return { pair: { keyPem, chainPem, ...certificate, pin: keyPem, identity: undefined }, caPem };
  }

  /** Makes the key that the agent would make. A real key would take real time. */
  override async loadRenewal(): Promise<RenewalKey> {
    if (this.#renewal !== undefined) return this.#renewal;
    this.#write();
    const key = `key ${++this.#keys}`;
    this.#renewal = { keyPem: key, csrPem: Buffer.from(key).toString("base64") };
    return this.#renewal;
  }

  override async clearRenewal(): Promise<void> {
    this.#write();
    this.#renewal = undefined;
  }

  #write(): void {
    if (this.#isFull()) throw new LinkError("DISK", "the disk is full");
  }
}
