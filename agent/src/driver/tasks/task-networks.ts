import type { KnownPod, PodNetwork, PodSandbox, PortMapping } from "../../network/network.ts";
import { DriverError } from "../driver-error.ts";
import {
  type LoadedNetworks,
  type NetworkRecord,
  NetworkRecords,
  type NetworkRecordsOptions,
} from "./network-records.ts";

/** The records are durable, so that a later plugin can adopt the networks. */
export interface TaskNetworksOptions extends NetworkRecordsOptions {
  /**
   * Opens the same kind of network as for pods, on this driver's own bridge. Called once, when the first task needs it.
   */
  readonly open: () => PodNetwork;
}

// A task has at most one network, and a host runs fewer containers than this.
const NETWORKS_MAX = 4_096;
const OWNER = /^[A-Za-z0-9_.-]{1,200}$/;

/**
 * The networks that the driver creates: for a task with a network of its own, and for an allocation on Nomad's request.
 */
export class TaskNetworks {
  readonly #options: TaskNetworksOptions;
  readonly #files: NetworkRecords;
  readonly #records = new Map<string, NetworkRecord>();
  #network: PodNetwork | undefined;
  #starting: Promise<PodNetwork> | undefined;

  constructor(options: TaskNetworksOptions) {
    this.#options = options;
    this.#files = new NetworkRecords(options);
  }

  /** Returns the owner's network. `created` is false if it existed already. */
  async attach(
    owner: string,
    ports: readonly PortMapping[],
    signal: AbortSignal,
  ): Promise<{ readonly sandbox: PodSandbox; readonly created: boolean }> {
    if (!OWNER.test(owner))
      throw new DriverError(
        "INVALID",
        `${JSON.stringify(owner)} cannot own a network: letters, digits, dots, dashes and underscores only`,
      );
    const network = await this.#started();
    const before = this.#records.get(owner);
    if (before === undefined && this.#records.size >= NETWORKS_MAX)
      throw new DriverError("FAILED_PRECONDITION", `the driver has ${NETWORKS_MAX} networks already`);
    const sandbox = await network.attach(owner, signal);
    try {
      const record = { owner, sandbox, ports: [...ports] };
      await this.#files.write(record);
      this.#records.set(owner, record);
      if (ports.length > 0) await network.publish(sandbox, ports, signal);
    } catch (error) {
      if (before === undefined) await this.detach(owner);
      throw error;
    }
    return { sandbox, created: before?.sandbox.namespacePath !== sandbox.namespacePath };
  }

  /** Removes the owner's network. Accepts unknown owners. */
  async detach(owner: string): Promise<void> {
    const network = await this.#started();
    await network.detach(owner, new AbortController().signal);
    this.#records.delete(owner);
    await this.#files.remove(owner);
  }

  /** Reports whether the owner has a network. Valid only after `adopt`. */
  has(owner: string): boolean {
    return this.#records.has(owner);
  }

  /** Adopts the networks that an earlier plugin has created. */
  async adopt(): Promise<void> {
    if ((await this.#files.owners()).length > 0) await this.#started();
  }

  async close(): Promise<void> {
    await this.#starting?.catch(() => undefined);
    await this.#network?.close();
  }

  #started(): Promise<PodNetwork> {
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  async #start(): Promise<PodNetwork> {
    const loaded = await this.#files.load();
    const network = this.#options.open();
    const known = [...loaded.records.values()].map(
      ({ owner, sandbox, ports }): KnownPod => ({ podUid: owner, sandbox, ports }),
    );
    try {
      const signal = new AbortController().signal;
      const found = await network.start(
        [...known, ...loaded.unreadable.map((podUid) => ({ podUid, ports: [] }))],
        signal,
      );
      await this.#remember(loaded, network);
      for (const { podUid: owner, sandbox } of found) {
        const record = { owner, sandbox, ports: [] };
        await this.#files.write(record);
        this.#records.set(owner, record);
      }
    } catch (error) {
      await network.close();
      throw error;
    }
    this.#network = network;
    return network;
  }

  async #remember({ records, halves, unreadable }: LoadedNetworks, network: PodNetwork): Promise<void> {
    for (const [owner, record] of records) {
      if (!halves.has(owner) || (await network.check(record.sandbox))) this.#records.set(owner, record);
      else await this.#files.remove(owner);
    }
    for (const owner of unreadable) await this.#files.remove(owner);
  }
}
