import { noDevices, type PodDevices } from "../../agent/src/devices/devices.ts";
import { decodePodState, encodePodState } from "../../agent/src/journal/pod-state.ts";
import { FakeNetworkFiles } from "../../agent/src/network/network-files.ts";
import { afterReboot } from "../../agent/src/pods/container-memory.ts";
import type { PodStatus } from "../../agent/src/pods/decide/pod-status.ts";
import type { Pod, PodMemory } from "../../agent/src/pods/pod.ts";
import { PodSupervisor } from "../../agent/src/pods/pod-supervisor.ts";
import { fromPodState, toPodState } from "../../agent/src/pods/stored-memory.ts";
import { probeOver } from "../../agent/src/probes/run-probe.ts";
import type { SimHost } from "./sim-host.ts";
import { openSession, type SimSession } from "./sim-session.ts";

/** The state that survives an agent. Assignments are written at once, pod memories a little later. */
export class SimDisk {
  readonly desired = new Map<string, Pod>();
  readonly states = new Map<string, Uint8Array>();
  bootId = 1;
  /** The duration of the write of a pod's memory. */
  writeMs = 15;
  /** If set, no memory can be written. */
  isFull = false;
}

/** One life of an agent, from its start to `kill`. */
export class SimAgent {
  readonly #host: SimHost;
  readonly #disk: SimDisk;
  readonly #session: SimSession;
  readonly supervisor: PodSupervisor;
  readonly statuses = new Map<string, PodStatus>();
  readonly trace: string[];
  /** The number of notices that the images of the host have changed. */
  imageChanges = 0;
  /** The reported statuses that are impossible. */
  readonly lies: string[] = [];
  #dead = false;

  constructor(
    host: SimHost,
    disk: SimDisk,
    random: () => number,
    trace: string[],
    devices: PodDevices = noDevices,
  ) {
    this.#host = host;
    this.#disk = disk;
    this.trace = trace;
    this.#session = openSession(host);
    const { runtime, network, volumes, files } = this.#session;
    this.supervisor = new PodSupervisor({
      instance: "sim",
      clock: host.clock,
      random,
      runtime,
      network,
      networkFiles: new FakeNetworkFiles(),
      devices,
      volumes,
      files,
      probe: probeOver(host.clock),
      host: { nodeName: "sim", addresses: ["192.0.2.1"], allocatable: () => ({}) },
      events: {
        remembered: (uid, memory) => this.#save(uid, memory),
        over: (uid, memory) => this.#saveOrThrow(uid, memory),
        removed: (uid, memory) => this.#saveOrThrow(uid, memory),
        changed: (status) => {
          if (this.#dead) return;
          this.statuses.set(status.uid, status);
          const { ready, containers } = status;
          if (ready && !containers.every((it) => it.ready)) this.lies.push(JSON.stringify(status));
        },
        stepped: (uid, step, _, error) => {
          if (!this.#dead)
            this.#note(`${uid} ${JSON.stringify(step)}${error === undefined ? "" : ` ! ${error}`}`);
        },
        forgotten: (uid) => {
          if (this.#dead) return;
          this.statuses.delete(uid);
          disk.states.delete(uid);
          disk.desired.delete(uid);
        },
        recovered: () => undefined,
        impaired: () => undefined,
        hookFailed: () => undefined,
      },
      imagesChanged: () => {
        this.imageChanges += 1;
      },
      limits: {
        startsAtOnce: 4,
        removalsAtOnce: 4,
        restart: { baseMs: 10_000, capMs: 300_000, goodRunMs: 600_000 },
        image: { baseMs: 5_000, capMs: 300_000 },
        fault: { baseMs: 500, capMs: 30_000 },
        repairIntervalMs: 60_000,
        closeMs: 1_000,
      },
    });
  }

  start(rebooted: boolean): void {
    if (rebooted) {
      for (const [uid, state] of this.#disk.states) {
        const memory = afterReboot(fromPodState(uid, decodePodState(state)), this.#host.clock.nowMs());
        this.#disk.states.set(uid, encodePodState(toPodState(memory)));
      }
    }
    const uids = new Set([...this.#disk.desired.keys(), ...this.#disk.states.keys()]);
    const recorded = [...uids].map((uid) => {
      const pod = this.#disk.desired.get(uid);
      const state = this.#disk.states.get(uid);
      return { uid, ...(pod && { pod }), ...(state && { memory: fromPodState(uid, decodePodState(state)) }) };
    });
    void this.supervisor.start(recorded);
  }

  assign(pod: Pod): void {
    this.#disk.desired.set(pod.uid, pod);
    this.supervisor.apply([pod], []);
  }

  unassign(uid: string): void {
    this.#disk.desired.delete(uid);
    this.supervisor.apply([], [uid]);
  }

  kill(): void {
    this.#dead = true;
    this.#session.cut();
    void this.supervisor.close();
  }

  async #saveOrThrow(uid: string, memory: PodMemory): Promise<void> {
    if (!(await this.#save(uid, memory))) throw new Error("no space left on device");
  }

  /** Writes a pod's memory, and returns whether that succeeded. */
  async #save(uid: string, memory: PodMemory): Promise<boolean> {
    const bytes = encodePodState(toPodState(memory));
    await this.#host.clock.sleep(this.#disk.writeMs);
    if (this.#dead || this.#disk.isFull) return false;
    if (this.#disk.desired.has(uid) || this.statuses.has(uid)) this.#disk.states.set(uid, bytes);
    return true;
  }

  #note(line: string): void {
    this.trace.push(`${this.#host.clock.monotonicMs() % 100_000_000} ${line}`);
  }
}
