import type { Clock } from "@forage/common/clock";
import type { Log, LogEntry } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import { Agent } from "../agent/src/agent.ts";
import type { HostReader } from "../agent/src/capacity/read-host.ts";
import { type Config, readConfig } from "../agent/src/config.ts";
import { DamageReports } from "../agent/src/damage-reports.ts";
import { noDevices } from "../agent/src/devices/devices.ts";
import type { Gateway } from "../agent/src/gateway/gateway.ts";
import type { HostFeatures } from "../agent/src/host-features.ts";
import type { JournalFiles } from "../agent/src/journal/journal-files.ts";
import type { JournalKey } from "../agent/src/journal/journal-key.ts";
import { CoordinatorAddresses } from "../agent/src/link/coordinator-addresses.ts";
import { IdentityFiles, type NodeIdentity } from "../agent/src/link/node-identity.ts";
import { StatusOutbox } from "../agent/src/link/status-outbox.ts";
import { FakeNetworkFiles } from "../agent/src/network/network-files.ts";
import type { NodeLogs } from "../agent/src/node-logs.ts";
import type { PodStatus } from "../agent/src/pods/decide/pod-status.ts";
import type { PodFiles } from "../agent/src/pods/pod-files.ts";
import { probeOver } from "../agent/src/probes/run-probe.ts";
import type { ServiceNetwork } from "../agent/src/service-network.ts";
import { type SimulatedChannel, simulatedClient } from "./agent-client.ts";
import type { SimHost } from "./host/sim-host.ts";
import { openSession } from "./host/sim-session.ts";
import { filesOn, type MemoryDisk } from "./memory-files.ts";

export interface AgentLifeOptions {
  readonly name: string;
  readonly sessionId: string;
  /** Changes with every boot of the host. */
  readonly bootId: string;
  readonly cpuMilli: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string;
  readonly host: SimHost;
  readonly disk: MemoryDisk;
  readonly key: JournalKey;
  /** The clock that the agent's process reads. */
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly life: AbortController;
  readonly channel: SimulatedChannel;
  /** Opens the parts that serve routes and load balancers on the host. Default: none. */
  readonly openServing?: (
    disk: Pick<AgentLifeOptions, "clock" | "random" | "life">,
    files: JournalFiles,
  ) => Promise<Serving>;
  readonly changed: (status: PodStatus) => void;
  readonly forgotten: (uid: string) => void;
  readonly note: (line: string) => void;
}

/** The parts of an agent that serve routes and load balancers. */
export interface Serving {
  readonly services: ServiceNetwork;
  readonly gateway: Gateway;
}

const FEATURES: HostFeatures = {
  hostname: "sim",
  seLinux: false,
  sctp: true,
  runtimeClasses: {},
  seccompDir: "/seccomp",
};
const GIB = 2 ** 30;
const MEASURE = {
  memoryBytes: 16 * GIB,
  disk: {
    totalBytes: 100 * GIB,
    availableBytes: 90 * GIB,
    totalInodes: 10_000_000,
    availableInodes: 9_000_000,
  },
};
const DATA_DIR = "/data";
const SETTINGS = {
  "data-dir": DATA_DIR,
  "run-dir": "/run/forage",
  coordinator: "sim:1",
  "http-listen": "off",
  instance: "sim",
  // Pods may use the whole host.
  reserve: "cpu=0,memory=0,ephemeral-storage=0",
  // The simulation transfers no images between nodes.
  "images-other-nodes": "never",
};
const CONFIG: Config = await readConfig(
  Object.entries(SETTINGS).map(([name, value]) => `--${name}=${value}`),
  {},
  "sim",
);
// The world begins in 2030 and lasts hours, so the certificate is never due for renewal.
const ISSUED_MS = Date.UTC(2029, 11, 1);
const EXPIRES_MS = Date.UTC(2130, 0, 1);

/** One life of the real agent on a simulated host. */
export class AgentLife {
  readonly #options: AgentLifeOptions;
  readonly #session: ReturnType<typeof openSession>;
  readonly #outbox: WatchedOutbox;
  readonly #damage: DamageReports;
  #agent: Agent | undefined;
  #touches = 0;

  static async start(options: AgentLifeOptions): Promise<AgentLife> {
    const life = new AgentLife(options);
    await life.#start();
    return life;
  }

  private constructor(options: AgentLifeOptions) {
    this.#options = options;
    this.#session = openSession(options.host);
    this.#outbox = new WatchedOutbox(options);
    this.#damage = new DamageReports({ dataDir: DATA_DIR, log: this.#log });
  }

  /** Returns the pods that the agent knows. */
  pods(): readonly PodStatus[] {
    return this.#agent?.pods() ?? [];
  }

  /** Ends the agent at once. Work that the host has begun for it continues. */
  kill(): void {
    this.#options.life.abort();
    this.#session.cut();
    // The dead agent has no effect any more. Closing it only frees its resources.
    void this.#agent?.close();
  }

  /** Changes the report of the node, and reports all pods again. */
  touch(): void {
    this.#touches++;
    this.#damage.note(`${DATA_DIR}/touched`, `${this.#touches}`, "nothing");
    for (const status of this.pods()) this.#outbox.put(status);
  }

  async #start(): Promise<void> {
    const options = this.#options;
    const { name, labels, clock, random, life, disk, address, channel } = options;
    const { runtime, network, volumes, files: podFiles } = this.#session;
    const files = filesOn(disk, { clock, random, life: life.signal });
    const serving = (await options.openServing?.(options, files)) ?? servesNothing();
    const config = { ...CONFIG, nodeName: name, labels };
    const coordinators = new CoordinatorAddresses({ configured: [config.coordinator], random });
    this.#agent = await Agent.start({
      ...{ config, version: "0.0.0", clock, random, sessionId: options.sessionId, files, coordinators },
      ...{ journalKey: options.key, identity: new SimulatedIdentity("/identity"), outbox: this.#outbox },
      ...{ runtime, network, networkFiles: new FakeNetworkFiles(), devices: noDevices, ...serving },
      ...{ probe: probeOver(clock), features: FEATURES, addresses: [address], damageReports: this.#damage },
      reserve: { keep: async () => {} },
      makeVolumes: () => volumes,
      makeLogs: () => new UnreadLogs(podFiles),
      hostReader: readerOf(options),
      hostUsage: { read: async () => ({ cpuMilli: 100, memoryBytes: 1 }) },
      scrape: () => Promise.reject(new Error("pods of the simulation have no metrics")),
      log: this.#log,
      openClient: () => simulatedClient(channel),
      ownCommand: [],
    });
  }

  get #log(): Log {
    const { life, note } = this.#options;
    const write = ({ event, ...fields }: LogEntry): void => {
      if (!life.signal.aborted) note(`${event} ${textOf(fields)}`);
    };
    return { debug: write, info: write, warn: write, error: write };
  }
}

/** An outbox that passes the agent's reports about pods to the witness as well. */
class WatchedOutbox extends StatusOutbox {
  readonly #options: Pick<AgentLifeOptions, "life" | "changed" | "forgotten">;

  constructor(options: Pick<AgentLifeOptions, "life" | "changed" | "forgotten">) {
    super();
    this.#options = options;
  }

  override put(status: PodStatus): void {
    super.put(status);
    const { life, changed } = this.#options;
    if (!life.signal.aborted) changed(status);
  }

  override drop(podUid: string): void {
    super.drop(podUid);
    const { life, forgotten } = this.#options;
    if (!life.signal.aborted) forgotten(podUid);
  }
}

/** An identity whose certificate needs no renewal. */
class SimulatedIdentity extends IdentityFiles {
  override async loadAuthority(): Promise<void> {}

  override async load(): Promise<NodeIdentity> {
    const pair = { keyPem: "", chainPem: "", serial: "01", pin: "", identity: undefined };
    return { pair: { ...pair, notBeforeMs: ISSUED_MS, notAfterMs: EXPIRES_MS }, caPem: "" };
  }
}

/** Discards all log entries. */
class UnreadLogs implements NodeLogs {
  readonly files: PodFiles;
  readonly containers = { read: async function* () {}, podChanged: () => {} };

  constructor(files: PodFiles) {
    this.files = files;
  }

  async adopt(): Promise<void> {}

  findKept(): undefined {}

  diskChanged(): void {}

  async close(): Promise<void> {}
}

function readerOf({ bootId, cpuMilli }: AgentLifeOptions): HostReader {
  return {
    identity: async () => ({ bootId, os: "linux", kernel: "6.0", architecture: "amd64" }),
    measure: async () => ({ ...MEASURE, cpuMilli }),
  };
}

function textOf(fields: object): string {
  return JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? messageOf(value) : value));
}

function servesNothing(): Serving {
  const services = {
    ...{ start: async () => {}, problems: () => [], networks: () => [], restart: () => () => {} },
    ...{ apply: () => {}, close: async () => {} },
  };
  const gateway = {
    ...{ start: () => {}, restart: () => {}, apply: () => {}, status: () => undefined },
    ...{ subscribe: () => () => {}, metrics: async () => undefined },
    ...{ traffic: async () => undefined, close: async () => {} },
  };
  return { services, gateway };
}
