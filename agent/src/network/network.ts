/**
 * Pod networking on one host: named network namespaces wired by CNI plugins, host ports by nftables.
 * Real one: `host-network.ts`; fake: `fake.ts`; both pass `../../test/network-contract.ts`.
 */
export interface PodNetwork {
  /**
   * Makes ready what all pods need (bridge, own nftables table) and takes over what `known` pods already have:
   * the sandboxes they were given, as far as these are intact (the network itself remembers which), and their
   * host ports, which stay published without a gap. Sandboxes and leases of anyone else of this instance are removed.
   * Returns what it found of pods that don't remember their sandbox.
   */
  start(known: readonly KnownPod[], signal: AbortSignal): Promise<readonly FoundPod[]>;
  /** The pod's namespace with its address: the one it has if that is intact, else a prepared or a new one. */
  attach(podUid: string, signal: AbortSignal): Promise<PodSandbox>;
  /** True if the sandbox's namespace and address are still in place; always so for the host's own network. */
  check(sandbox: PodSandbox): Promise<boolean>;
  /** Returns the sandboxes whose namespace or address is no longer in place. One check covers all, so it can run often. */
  findLost(sandboxes: readonly PodSandbox[]): Promise<readonly PodSandbox[]>;
  /**
   * Reserves host ports for a pod on the host's own network, for which this network makes no sandbox. Reserves all or none;
   * NO_PORT_LEFT names the port that another pod has.
   */
  takeHostPorts(podUid: string, wanted: readonly PortRequest[]): Promise<readonly PortMapping[]>;
  /** Removes namespace, lease and host ports. Unknown uids are fine. */
  detach(podUid: string, signal: AbortSignal): Promise<void>;
  /** Allocates free host ports from the configured range, all or none; those already held by the pod are kept. */
  allocatePorts(podUid: string, wanted: readonly PortRequest[]): Promise<readonly PortMapping[]>;
  /** Releases allocated host ports of the pod that are not among the mappings: call it once they are no longer published. */
  keepPorts(podUid: string, mappings: readonly PortMapping[]): void;
  /** Makes the kernel's rules equal to `mappings` of the pod. */
  publish(sandbox: PodSandbox, mappings: readonly PortMapping[], signal: AbortSignal): Promise<void>;
  unpublish(podUid: string, signal: AbortSignal): Promise<void>;
  /** Stops preparing; leaves pods' sandboxes and rules alone. */
  close(): Promise<void>;
}

export interface KnownPod {
  readonly podUid: string;
  /** The published ports. They are kept even if the sandbox is gone, as after a reboot. */
  readonly ports: readonly PortMapping[];
  /** The sandbox that the pod remembers. Undefined if its memory was lost or it never had one. */
  readonly sandbox?: PodSandbox;
  /** The ports that a pod without a sandbox needs, so that its host ports can be read back. */
  readonly wanted?: readonly PortRequest[];
  /** Processes of the running containers of a pod without a sandbox, by which its namespace is found. */
  readonly processes?: readonly number[];
}

/** The network's knowledge about a pod whose own memory of it was lost. */
export interface FoundPod {
  readonly podUid: string;
  readonly sandbox: PodSandbox;
  /** Undefined if some of the needed ports are not published. */
  readonly ports?: readonly PortMapping[];
}

export interface PodSandbox {
  readonly podUid: string;
  /** The path of the namespace, such as `/run/netns/<name>`; `host` (the runtime's HOST_NETWORK) for the host's own. */
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

/** Reports whether it is the host's own network, which always exists. */
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
  /** The address of the host that has the port. Undefined: all addresses. */
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
