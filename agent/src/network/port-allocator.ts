import { NetworkError, type PortMapping, type PortRequest } from "./network.ts";

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** Reports whether no other program of the host uses a port. */
export type PortProbe = (protocol: PortRequest["protocol"], port: number) => Promise<boolean>;

/**
 * Limits the number of probes, each of which costs one or two system calls. A range in which other programs use this
 * many ports is misconfigured.
 */
const PROBES_MAX = 256;

/** Allocates host ports to pods. One pod holds a port of a protocol until the pod is released. */
export class PortAllocator {
  readonly #range: PortRange;
  readonly #probe: PortProbe;
  readonly #holders = new Map<string, string>();
  readonly #held = new Map<string, readonly PortMapping[]>();
  #next: number;
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * Allocation starts at a random port, so that after a restart clients of an old port don't reach a new pod at once.
   */
  constructor(range: PortRange, probe: PortProbe, random: () => number) {
    this.#range = range;
    this.#probe = probe;
    this.#next = range.first + Math.floor(random() * (range.last - range.first + 1));
  }

  /**
   * Adopts ports from before. Returns those that another pod already holds, which are not adopted. May be repeated,
   * because a failed start of the network is retried.
   */
  hold(podUid: string, mappings: readonly PortMapping[]): readonly PortMapping[] {
    const own = mappings.filter((it) => (this.#holders.get(keyOf(it)) ?? podUid) === podUid);
    this.#record(podUid, own);
    return mappings.filter((mapping) => !own.includes(mapping));
  }

  /** Allocates host ports, in the order of `desired`. Rejects with NO_PORT_LEFT without allocating any. */
  allocate(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]> {
    const result = this.#turn.then(() => this.#allocateNow(podUid, desired));
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Releases the ports of the pod that are not among the mappings. */
  keepOnly(podUid: string, mappings: readonly PortMapping[]): void {
    const kept = new Set(mappings.map(keyOf));
    const held = this.#held.get(podUid) ?? [];
    for (const mapping of held) if (!kept.has(keyOf(mapping))) this.#holders.delete(keyOf(mapping));
    const rest = held.filter((mapping) => kept.has(keyOf(mapping)));
    if (rest.length === 0) this.#held.delete(podUid);
    else this.#held.set(podUid, rest);
  }

  /** Allocates the host ports that equal the container's ports. Rejects with NO_PORT_LEFT without allocating any. */
  allocateOwn(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]> {
    const mappings = desired.map((it) => ({ ...it, hostPort: it.containerPort }));
    const result = this.#turn.then(() => {
      const conflict = mappings.find((it) => (this.#holders.get(keyOf(it)) ?? podUid) !== podUid);
      if (conflict !== undefined) {
        const message = `port ${conflict.hostPort}/${conflict.protocol} of this host is held by another pod`;
        throw new NetworkError("NO_PORT_LEFT", message, { retryable: true });
      }
      this.#record(podUid, mappings);
      return mappings;
    });
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Releases the pod's ports. Accepts unknown uids. */
  release(podUid: string): void {
    for (const mapping of this.#held.get(podUid) ?? []) this.#holders.delete(keyOf(mapping));
    this.#held.delete(podUid);
  }

  async #allocateNow(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]> {
    const held = this.#held.get(podUid) ?? [];
    const taken = new Set<string>();
    const mappings: PortMapping[] = [];
    for (const request of desired) {
      const { container, containerPort, protocol } = request;
      const kept = held.find(
        (it) => it.container === container && it.containerPort === containerPort && it.protocol === protocol,
      );
      const hostPort = kept?.hostPort ?? (await this.#findFree(protocol, taken));
      taken.add(keyOf({ protocol, hostPort }));
      mappings.push({ container, containerPort, protocol, hostPort });
    }
    this.#record(podUid, mappings);
    return mappings;
  }

  async #findFree(protocol: PortRequest["protocol"], taken: ReadonlySet<string>): Promise<number> {
    const size = this.#range.last - this.#range.first + 1;
    let probes = 0;
    for (let step = 0; step < size && probes < PROBES_MAX; step++) {
      const hostPort = this.#next;
      this.#next = hostPort >= this.#range.last ? this.#range.first : hostPort + 1;
      const key = keyOf({ protocol, hostPort });
      if (this.#holders.has(key) || taken.has(key)) continue;
      probes++;
      if (await this.#probe(protocol, hostPort)) return hostPort;
    }
    throw new NetworkError(
      "NO_PORT_LEFT",
      `no free ${protocol} port between ${this.#range.first} and ${this.#range.last}`,
      { retryable: true },
    );
  }

  #record(podUid: string, mappings: readonly PortMapping[]): void {
    const held = this.#held.get(podUid) ?? [];
    const added = mappings.filter((mapping) => this.#holders.get(keyOf(mapping)) !== podUid);
    for (const mapping of added) this.#holders.set(keyOf(mapping), podUid);
    if (added.length > 0) this.#held.set(podUid, [...held, ...added]);
  }
}

function keyOf({
  protocol,
  hostPort,
  hostIp = "",
}: Pick<PortMapping, "protocol" | "hostPort" | "hostIp">): string {
  return `${protocol} ${hostPort} ${hostIp}`;
}
