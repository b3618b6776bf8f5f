/**
 * Pod networking on one host: named network namespaces wired by CNI plugins, and host ports by nftables.
 * `host-network.ts` has the real implementation and `fake.ts` the one for tests; both pass
 * `../../test/network-contract.ts`.
 */
export interface PodNetwork {
  /**
   * Prepares what all pods need (bridge, own nftables table) and adopts what the `known` pods have: their sandboxes, as
   * far as these are intact according to the network's own records, and their host ports, which stay published without
   * interruption. Removes all other sandboxes and leases of this instance. Returns the sandboxes it found for pods that
   * don't remember theirs.
   */
  start(known: readonly KnownPod[], signal: AbortSignal): Promise<readonly FoundPod[]>;
  /** Returns the pod's sandbox: its present one if that is intact, else a prepared or a new one. */
  attach(podUid: string, signal: AbortSignal): Promise<PodSandbox>;
  /** Reports whether the sandbox's namespace and address still exist. Always true for the host's own network. */
  check(sandbox: PodSandbox): Promise<boolean>;
  /**
   * Returns the sandboxes whose namespace or address no longer exists. One check covers all sandboxes, so it can run
   * often.
   */
  findLost(sandboxes: readonly PodSandbox[]): Promise<readonly PodSandbox[]>;
  /**
   * Reserves host ports for a pod on the host's own network, for which this network makes no sandbox. Reserves all or none;
   * NO_PORT_LEFT names the port that another pod has.
   */
  acquireHostPorts(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]>;
  /** Removes the pod's namespace, lease and host ports. Accepts unknown uids. */
  detach(podUid: string, signal: AbortSignal): Promise<void>;
  /** Allocates free host ports from the configured range, all or none. The pod keeps ports that it already holds. */
  allocatePorts(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]>;
  /** Releases the pod's host ports that are not among the mappings. Call it once they are no longer published. */
  keepPorts(podUid: string, mappings: readonly PortMapping[]): void;
  /** Makes the kernel's rules for the pod equal to `mappings`. */
  publish(sandbox: PodSandbox, mappings: readonly PortMapping[], signal: AbortSignal): Promise<void>;
  unpublish(podUid: string, signal: AbortSignal): Promise<void>;
  /** Stops preparing spare sandboxes. Leaves pods' sandboxes and rules unchanged. */
  close(): Promise<void>;
}

export interface KnownPod {
  readonly podUid: string;
  /** The published ports. They are kept even if the sandbox is gone, as after a reboot. */
  readonly ports: readonly PortMapping[];
  /** The sandbox that the pod remembers. Undefined if its memory was lost or it never had one. */
  readonly sandbox?: PodSandbox;
  /** The ports that a pod without a sandbox needs, so that its host ports can be read back. */
  readonly desired?: readonly PortRequest[];
  /**
   * The processes of a pod's running containers, by which the namespace of a pod without a remembered sandbox is found.
   */
  readonly processes?: readonly number[];
}

/** A sandbox that the network found for a pod that does not remember it. */
export interface FoundPod {
  readonly podUid: string;
  readonly sandbox: PodSandbox;
  /** Undefined if some of the required ports are not published. */
  readonly ports?: readonly PortMapping[];
}

export interface PodSandbox {
  readonly podUid: string;
  /**
   * The path of the namespace, such as `/run/netns/<name>`, or `host` (the runtime's HOST_NETWORK) for the host's own
   * network.
   */
  readonly namespacePath: string;
  readonly address: string;
  /** The IPv6 address of a pod with both families. */
  readonly address6?: string;
}

/** Returns all addresses of the sandbox, its primary address first. */
export function addressesOf({
  address,
  address6,
}: Pick<PodSandbox, "address" | "address6">): readonly string[] {
  return address6 === undefined || address6 === address ? [address] : [address, address6];
}

/** Reports whether the sandbox is the host's own network, which always exists. */
export function isHostNetwork({ namespacePath }: Pick<PodSandbox, "namespacePath">): boolean {
  return namespacePath === "host";
}

export interface PortRequest {
  readonly container: string;
  readonly containerPort: number;
  readonly protocol: "TCP" | "UDP" | "SCTP";
}

export interface PortMapping extends PortRequest {
  readonly hostPort: number;
  /** The host's address to which the port is bound. Undefined: all addresses. */
  readonly hostIp?: string;
}

export type NetworkErrorCode = "SETUP_FAILED" | "NO_ADDRESS_LEFT" | "NO_PORT_LEFT" | "TIMEOUT" | "ABORTED";

export class NetworkError extends Error {
  readonly code: NetworkErrorCode;
  readonly retryable: boolean;

  constructor(code: NetworkErrorCode, message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = "NetworkError";
    this.code = code;
    this.retryable = options.retryable;
  }
}
