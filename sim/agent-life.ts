import type { Clock } from "@forage/common/clock";
import { noDevices } from "../agent/src/devices/devices.ts";
import type { Gateway } from "../agent/src/gateway/gateway.ts";
import type { HostFeatures } from "../agent/src/host-features.ts";
import { Journal } from "../agent/src/journal/journal.ts";
import type { JournalFiles } from "../agent/src/journal/journal-files.ts";
import type { JournalKey } from "../agent/src/journal/journal-key.ts";
import { AssignmentReader } from "../agent/src/link/assignment-reader.ts";
import { CoordinatorLink } from "../agent/src/link/coordinator-link.ts";
import { IdentityFiles, type NodeIdentity } from "../agent/src/link/node-identity.ts";
import { StatusOutbox } from "../agent/src/link/status-outbox.ts";
import { FakeNetworkFiles } from "../agent/src/network/network-files.ts";
import { NodeReporter } from "../agent/src/node-reporter.ts";
import { FAULT_BACK_OFF, IMAGE_BACK_OFF } from "../agent/src/pods/back-offs.ts";
import { afterReboot } from "../agent/src/pods/container-memory.ts";
import type { PodStatus } from "../agent/src/pods/decide/pod-status.ts";
import { PodSupervisor } from "../agent/src/pods/pod-supervisor.ts";
import { retryUntilDone } from "../agent/src/pods/retry-until-done.ts";
import { fromPodState, toPodState } from "../agent/src/pods/stored-memory.ts";
import { probeOver } from "../agent/src/probes/run-probe.ts";
import { recordedPods } from "../agent/src/recorded-pods.ts";
import type { ServiceNetwork } from "../agent/src/service-network.ts";
import { StateSaver } from "../agent/src/state-saver.ts";
import { supervisorEvents } from "../agent/src/supervisor-events.ts";
import { type SimulatedChannel, simulatedClient } from "./agent-client.ts";
import type { SimHost } from "./host/sim-host.ts";
import { openSession } from "./host/sim-session.ts";
import { filesOn, type MemoryDisk } from "./memory-files.ts";

export interface AgentLifeOptions {
  readonly name: string;
  readonly sessionId: string;
  readonly bootId: string;
  /** The host has booted since the last life. */
  readonly rebooted: boolean;
  readonly cpu: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string;
  readonly host: SimHost;
  readonly disk: MemoryDisk;
  readonly key: JournalKey;
  /** As the agent's process reads it. */
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly life: AbortController;
  readonly channel: SimulatedChannel;
  /** Opens what serves routes and load balancers on the host. Default: nothing does. */
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
// The world begins in 2030 and lasts hours, so the certificate is never due for renewal.
const ISSUED_MS = Date.UTC(2029, 11, 1);
const EXPIRES_MS = Date.UTC(2130, 0, 1);
const GOOD_RUN_MS = 600_000;
const RESTART_BASE_MS = 10_000;
const RESTART_CAP_MS = 300_000;

/** One life of the real agent: supervisor, journal, reporter and link, on a simulated host. */
export class AgentLife {
  readonly #options: AgentLifeOptions;
  readonly #session: ReturnType<typeof openSession>;
  readonly #outbox = new StatusOutbox();
  readonly journal: Journal;
  readonly supervisor: PodSupervisor;
  readonly #reporter: NodeReporter;
  readonly #link: CoordinatorLink;
  readonly #services: ServiceNetwork;
  #kernel = 0;

  static async start(options: AgentLifeOptions): Promise<AgentLife> {
    const { disk, clock, random, life, key, rebooted } = options;
    const files = filesOn(disk, { clock, random, life: life.signal });
    const journal = await Journal.open({ dir: "/journal", key, signal: life.signal, files });
    if (rebooted) disk.staleStates = new Set(journal.states().keys());
    await Promise.allSettled(
      [...journal.states()]
        .filter(([uid]) => disk.staleStates.has(uid))
        .map(async ([uid, state]) => {
          await journal.saveState(uid, toPodState(afterReboot(fromPodState(uid, state), clock.nowMs())));
          disk.staleStates.delete(uid);
        }),
    );
    const write = () => writeStale(disk, journal);
    void retryUntilDone(write, { clock, signal: life.signal, outcome: () => {} });
    const { openServing } = options;
    const serving = openServing === undefined ? servesNothing() : await openServing(options, files);
    return new AgentLife(options, journal, serving);
  }

  private constructor(options: AgentLifeOptions, journal: Journal, { services, gateway }: Serving) {
    const { host, clock, random, life } = options;
    this.#options = options;
    this.journal = journal;
    this.#services = services;
    const reader = new AssignmentReader(FEATURES, new Map(), () => "");
    reader.keepOnly(journal.desired());
    this.#session = openSession(host);
    this.#reporter = this.#makeReporter();
    const saver = new StateSaver({
      ...{ journal, clock, onError: (error) => options.note(`state not saved: ${String(error)}`) },
      onHealth: (problem) => this.#reporter.impaired("states", problem),
    });
    this.supervisor = this.#makeSupervisor(saver);
    this.#link = new CoordinatorLink({
      enroll: {
        ...{ address: { host: "sim", port: 1 }, nodeName: options.name, tokenFile: undefined },
        files: new SimulatedIdentity("/identity"),
      },
      ...{ agentVersion: "0.0.0", bootId: options.bootId, sessionId: options.sessionId, clock, random },
      ...{ journal, reader, pods: this.supervisor, outbox: this.#outbox, node: this.#reporter },
      ...{ meter: nothing(), prefetcher: nothing(), services, gateway },
      ...{ removeClaims: () => {}, openSession: () => {} },
      assignmentsHealth: (problem) => this.#reporter.impaired("assignments", problem),
      events: {
        changed: ({ kind, message }) => options.note(`link ${kind}${message ? `: ${message}` : ""}`),
        renewed: () => {},
        renewalFailed: () => {},
      },
      openClient: () => simulatedClient(options.channel),
    });
    gateway.start();
    const ready = this.supervisor.start(recordedPods(journal, reader));
    void ready.then(() => services.start());
    void this.#reporter.run(life.signal);
    void ready.then(() => this.#link.run(life.signal));
  }

  /** Ends it at once. Work that the host has begun for it goes on. */
  kill(): void {
    this.#options.life.abort();
    this.#session.cut();
    void this.supervisor.close();
  }

  /** Changes the report of the node. */
  touch(): void {
    this.#kernel++;
    this.#link.nodeChanged();
    for (const status of this.supervisor.statuses()) this.#outbox.put(status);
  }

  #makeSupervisor(saver: StateSaver): PodSupervisor {
    const { name, clock, random, life, address, cpu } = this.#options;
    const { runtime, network, volumes, files } = this.#session;
    const events = supervisorEvents({
      ...{ log: silentLog(), saver, outbox: this.#outbox, reporter: this.#reporter },
      noteDamage: () => {},
      stateFile: (uid) => this.journal.stateFile(uid),
      stepped: () => {},
      changed: () => {},
    });
    return new PodSupervisor({
      ...{ instance: "sim", clock, random, runtime, network, volumes, files, devices: noDevices },
      networkFiles: new FakeNetworkFiles(),
      probe: probeOver(clock),
      host: { nodeName: name, addresses: [address], allocatable: () => quantities(cpu) },
      events: {
        ...events,
        changed: (status) => {
          if (life.signal.aborted) return;
          events.changed(status);
          this.#options.changed(status);
        },
        forgotten: (uid) => {
          if (life.signal.aborted) return;
          events.forgotten(uid);
          this.#options.forgotten(uid);
        },
        stepped: (uid, step, tookMs, error) => {
          if (life.signal.aborted) return;
          events.stepped(uid, step, tookMs, error);
          this.#options.note(`${uid} ${JSON.stringify(step)}${error === undefined ? "" : ` ! ${error}`}`);
        },
      },
      limits: {
        ...{ startsAtOnce: 8, removalsAtOnce: 8, repairIntervalMs: 60_000, closeMs: 1_000 },
        restart: { baseMs: RESTART_BASE_MS, capMs: RESTART_CAP_MS, goodRunMs: GOOD_RUN_MS },
        ...{ image: IMAGE_BACK_OFF, fault: FAULT_BACK_OFF },
      },
    });
  }

  #makeReporter(): NodeReporter {
    const { clock, cpu, labels, address, host } = this.#options;
    const amounts = quantities(cpu);
    return new NodeReporter({
      ...{ clock, runtime: this.#session.runtime, labels, addresses: [address], features: FEATURES },
      capacity: {
        report: () => ({
          ...{ capacity: amounts, allocatable: amounts, labels: {}, os: "linux" },
          ...{ kernel: `6.${this.#kernel}`, architecture: "amd64" },
          diskPressure: { pressure: false, reason: "DiskHasRoom", message: "" },
        }),
      },
      usage: { read: async () => ({ cpuMilli: 100, memoryBytes: 1 }) },
      networks: () => this.#services.networks(),
      devices: () => ({ capacity: {}, allocatable: {} }),
      claims: () => host.volumes.claims(),
      podCount: () => this.supervisor.statuses().length,
      damage: () => undefined,
      onChange: () => this.#link.nodeChanged(),
    });
  }
}

/** A certificate that needs no renewal. */
class SimulatedIdentity extends IdentityFiles {
  override async load(): Promise<NodeIdentity> {
    const pair = { keyPem: "", chainPem: "", serial: "01", pin: "", identity: undefined };
    return { pair: { ...pair, notBeforeMs: ISSUED_MS, notAfterMs: EXPIRES_MS }, caPem: "" };
  }
}

function quantities(cpu: string) {
  return { cpu, memory: "16Gi", pods: "110", "ephemeral-storage": "100Gi" };
}

function silentLog() {
  return { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
}

/** Nothing is measured, and no image is fetched ahead. */
function nothing() {
  return { ask: () => {}, ended: () => {} };
}

function servesNothing(): Serving {
  const services = {
    ...{ start: async () => {}, problems: () => [], networks: () => [], restart: () => () => {} },
    ...{ take: () => {}, close: async () => {} },
  };
  const gateway = {
    ...{ start: () => {}, restart: () => {}, take: () => {}, status: () => undefined },
    ...{ subscribe: () => () => {}, metrics: async () => undefined },
    ...{ traffic: async () => undefined, close: async () => {} },
  };
  return { services, gateway };
}

/** Writes the states that a full disk kept from being written after a reboot. The journal has them in memory. */
async function writeStale({ staleStates }: MemoryDisk, journal: Journal): Promise<void> {
  for (const uid of staleStates) {
    const state = journal.state(uid);
    if (state !== undefined) await journal.saveState(uid, state);
    staleStates.delete(uid);
  }
}
