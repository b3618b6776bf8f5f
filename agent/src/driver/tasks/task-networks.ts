import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { KnownPod, PodNetwork, PodSandbox, PortMapping } from "../../network/network.ts";
import { DriverError } from "../driver-error.ts";

export interface TaskNetworksParts {
  /** Opens the network that pods use, for this driver's own bridge. Called once, when the first task needs it. */
  readonly open: () => PodNetwork;
  /** One file per network, durable: a later plugin takes the networks over. */
  readonly dir: string;
}

interface NetworkRecord {
  readonly owner: string;
  readonly sandbox: PodSandbox;
  readonly ports: readonly PortMapping[];
}

// A task's network per container at most; a host runs fewer containers than this.
const NETWORKS_MAX = 4_096;
const OWNER = /^[A-Za-z0-9_.-]{1,200}$/;

/** Networks that the driver makes: for a task with a network of its own, and for an allocation on Nomad's request. */
export class TaskNetworks {
  readonly #parts: TaskNetworksParts;
  readonly #records = new Map<string, NetworkRecord>();
  #network: PodNetwork | undefined;
  #starting: Promise<PodNetwork> | undefined;

  constructor(parts: TaskNetworksParts) {
    this.#parts = parts;
  }

  /** The owner's network; `created` is false if it had one already. */
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
      await this.#write(record);
      this.#records.set(owner, record);
      if (ports.length > 0) await network.publish(sandbox, ports, signal);
    } catch (error) {
      if (before === undefined) await this.detach(owner);
      throw error;
    }
    return { sandbox, created: before?.sandbox.namespacePath !== sandbox.namespacePath };
  }

  /** Removes the owner's network. Unknown owners are fine. */
  async detach(owner: string): Promise<void> {
    const network = await this.#started();
    await network.detach(owner, new AbortController().signal);
    this.#records.delete(owner);
    await rm(join(this.#parts.dir, owner), { force: true });
  }

  /** Reports whether the owner has a network; known once networks were taken over. */
  has(owner: string): boolean {
    return this.#records.has(owner);
  }

  /** Takes over the networks that an earlier plugin made, if there are any. */
  async takeOver(): Promise<void> {
    const names = await readdir(this.#parts.dir).catch(() => []);
    if (names.length > 0) await this.#started();
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
    await this.#load();
    const network = this.#parts.open();
    const known = [...this.#records.values()].map(
      ({ owner, sandbox, ports }): KnownPod => ({ podUid: owner, sandbox, ports }),
    );
    try {
      await network.start(known, new AbortController().signal);
    } catch (error) {
      await network.close();
      throw error;
    }
    this.#network = network;
    return network;
  }

  async #load(): Promise<void> {
    const { dir } = this.#parts;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const name of await readdir(dir)) {
      const record = parseRecord(await readFile(join(dir, name), "utf8").catch(() => ""));
      // A write that a crash cut off belongs to a start that failed.
      if (record === undefined || record.owner !== name) await rm(join(dir, name), { force: true });
      else this.#records.set(name, record);
    }
  }

  async #write(record: NetworkRecord): Promise<void> {
    const path = join(this.#parts.dir, record.owner);
    await writeFile(`${path}.tmp`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  }
}

function parseRecord(text: string): NetworkRecord | undefined {
  try {
    const read = JSON.parse(text) as Partial<NetworkRecord>;
    if (typeof read.owner !== "string" || typeof read.sandbox?.namespacePath !== "string") return undefined;
    return { owner: read.owner, sandbox: read.sandbox, ports: read.ports ?? [] };
  } catch {
    return undefined;
  }
}
