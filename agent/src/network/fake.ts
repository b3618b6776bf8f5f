import {
  type FoundPod,
  isHostNetwork,
  type KnownPod,
  NetworkError,
  type PodNetwork,
  type PodSandbox,
  type PortMapping,
  type PortRequest,
} from "./network.ts";
import { parsePodCidr } from "./pod-cidr.ts";
import { PortAllocator, type PortRange } from "./port-allocator.ts";

const FAKE_POD_CIDR = "10.64.0.0/16";

/** The state of a host that outlives an agent: namespaces and rules. A reboot removes it. */
export class FakeNetworkHost {
  readonly sandboxes = new Map<string, PodSandbox>();
  /** Published ports by pod uid. */
  readonly published = new Map<string, readonly PortMapping[]>();
  /** Ports in use by other programs, in the form `TCP 20000`. */
  readonly occupied = new Set<string>();
  readonly #next: () => number;
  #made = 0;

  /** `next` returns a different number for each new sandbox. Default: a counter. */
  constructor(next?: () => number) {
    this.#next = next ?? (() => ++this.#made);
  }

  reboot(): void {
    this.sandboxes.clear();
    this.published.clear();
  }

  makeSandbox(podUid: string): PodSandbox {
    const number = this.#next();
    const first = Number(parsePodCidr(FAKE_POD_CIDR).first);
    const value = first + 1 + number;
    const address = [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
    return { podUid, namespacePath: `/run/netns/forage-fake-${number}`, address };
  }
}

export type FakeNetworkCall = "start" | "attach" | "detach" | "allocatePorts" | "publish" | "unpublish";

/** In-memory pod networking that fulfils the same contract as the real one. */
export class FakeNetwork implements PodNetwork {
  readonly #host: FakeNetworkHost;
  readonly #ports: PortAllocator;
  readonly #failures = new Map<FakeNetworkCall, NetworkError[]>();
  #open = false;

  constructor(host: FakeNetworkHost, hostPorts: PortRange = { first: 20_000, last: 29_999 }) {
    this.#host = host;
    const probe = async (protocol: string, port: number) => !host.occupied.has(`${protocol} ${port}`);
    this.#ports = new PortAllocator(hostPorts, probe, () => 0);
  }

  /**
   * Makes the next call of this kind reject with the error and have no effect. Several faults apply one after the
   * other.
   */
  failNext(call: FakeNetworkCall, error: NetworkError): void {
    this.#failures.set(call, [...(this.#failures.get(call) ?? []), error]);
  }

  async start(known: readonly KnownPod[], signal: AbortSignal): Promise<readonly FoundPod[]> {
    this.#enter("start", signal);
    const found = known.flatMap(({ podUid, sandbox: remembered, desired = [] }) => {
      const sandbox = this.#host.sandboxes.get(podUid);
      if (remembered !== undefined || sandbox === undefined) return [];
      const published = this.#host.published.get(podUid) ?? [];
      const ports = published.filter((it) => desired.some((request) => sameRequest(request, it)));
      return [{ podUid, sandbox, ...(ports.length === desired.length && { ports }) }];
    });
    const uids = new Set(known.map((pod) => pod.podUid));
    for (const uid of [...this.#host.sandboxes.keys()]) if (!uids.has(uid)) this.#host.sandboxes.delete(uid);
    this.#host.published.clear();
    for (const pod of known) {
      const { podUid } = pod;
      const ports = [...pod.ports, ...(found.find((it) => it.podUid === podUid)?.ports ?? [])];
      const heldByOthers = this.#ports.hold(podUid, ports);
      const own = ports.filter((mapping) => !heldByOthers.includes(mapping));
      if (this.#host.sandboxes.has(podUid)) this.#host.published.set(podUid, own);
    }
    this.#open = true;
    return found;
  }

  async attach(podUid: string, signal: AbortSignal): Promise<PodSandbox> {
    this.#assertOpen();
    this.#enter("attach", signal);
    const sandbox = this.#host.sandboxes.get(podUid) ?? this.#host.makeSandbox(podUid);
    this.#host.sandboxes.set(podUid, sandbox);
    return sandbox;
  }

  async check(sandbox: PodSandbox): Promise<boolean> {
    this.#assertOpen();
    if (isHostNetwork(sandbox)) return true;
    const present = this.#host.sandboxes.get(sandbox.podUid);
    return present?.namespacePath === sandbox.namespacePath && present.address === sandbox.address;
  }

  async findLost(sandboxes: readonly PodSandbox[]): Promise<readonly PodSandbox[]> {
    const intact = await Promise.all(sandboxes.map((sandbox) => this.check(sandbox)));
    return sandboxes.filter((_, index) => !intact[index]);
  }

  async detach(podUid: string, signal: AbortSignal): Promise<void> {
    this.#assertOpen();
    this.#enter("detach", signal);
    this.#host.sandboxes.delete(podUid);
    this.#host.published.delete(podUid);
    this.#ports.release(podUid);
  }

  async allocatePorts(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]> {
    this.#enter("allocatePorts");
    return this.#ports.allocate(podUid, desired);
  }

  async acquireHostPorts(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]> {
    this.#enter("allocatePorts");
    return this.#ports.allocateOwn(podUid, desired);
  }

  keepPorts(podUid: string, mappings: readonly PortMapping[]): void {
    this.#ports.keepOnly(podUid, mappings);
  }

  async publish(sandbox: PodSandbox, mappings: readonly PortMapping[], signal: AbortSignal): Promise<void> {
    this.#assertOpen();
    this.#enter("publish", signal);
    this.#host.published.set(sandbox.podUid, mappings);
  }

  async unpublish(podUid: string, signal: AbortSignal): Promise<void> {
    this.#assertOpen();
    this.#enter("unpublish", signal);
    this.#host.published.delete(podUid);
  }

  async close(): Promise<void> {
    this.#open = false;
  }

  #enter(call: FakeNetworkCall, signal?: AbortSignal): void {
    const failure = this.#failures.get(call)?.shift();
    if (failure !== undefined) throw failure;
    if (signal?.aborted) throw new NetworkError("ABORTED", `${call}: aborted`, { retryable: true });
  }

  #assertOpen(): void {
    if (!this.#open)
      throw new NetworkError("SETUP_FAILED", "the network is not started", { retryable: true });
  }
}

function sameRequest(a: PortRequest, b: PortRequest): boolean {
  return a.container === b.container && a.containerPort === b.containerPort && a.protocol === b.protocol;
}
