import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { containsIp, familyOf } from "@forage/common/ip";
import { messageOf } from "@forage/common/message-of";
import { AccessTable } from "./access-table.ts";
import { adoptSandboxes, findForgotten, sandboxOf } from "./adopt-sandboxes.ts";
import { assertPlugin, Cni } from "./cni.ts";
import { tablesDroppingForwards } from "./forward-policy.ts";
import { assertNoOverlap, ensureBridge, listLinks, listRoutes, uplinkMtu } from "./host-links.ts";
import type { HostNetworkDependencies, HostNetworkOptions } from "./host-network-options.ts";
import { type InstanceNames, instanceNames } from "./instance-names.ts";
import {
  hasIpv6,
  IP_FORWARD,
  routeLocalnet,
  setSysctls,
  sysctlsAgainstRouters,
  sysctlsForIpv6,
} from "./kernel-sysctls.ts";
import { LeaseDirectory } from "./lease-directory.ts";
import {
  addressesOf,
  type FoundPod,
  isHostNetwork,
  type KnownPod,
  NetworkError,
  type PodNetwork,
  type PodSandbox,
  type PortMapping,
  type PortRequest,
} from "./network.ts";
import { namespacePath } from "./network-namespaces.ts";
import { type PodCidr, parsePodCidr, parsePodCidr6 } from "./pod-cidr.ts";
import { PortAllocator, type PortRange } from "./port-allocator.ts";
import { forgetConnections } from "./port-table.ts";
import { PortTables } from "./port-tables.ts";
import { repairSpare } from "./repair-spare.ts";
import { SandboxMaker } from "./sandbox-maker.ts";
import { SandboxPool } from "./sandbox-pool.ts";
import { type SandboxRecord, SandboxRecords } from "./sandbox-records.ts";

export type { HostNetworkDependencies, HostNetworkOptions } from "./host-network-options.ts";

export const DEFAULT_POD_CIDR = "10.64.0.0/16";
/** The default range, below the kernel's range for outgoing connections (32768 up) and Kubernetes' node ports (30000 up). */
export const DEFAULT_HOST_PORTS: PortRange = { first: 20_000, last: 29_999 };
export const DEFAULT_CNI_DIRECTORY = "/usr/lib/cni";
/**
 * The number of pods that can start at once without waiting for CNI. Each spare sandbox costs about 0.2 MB of kernel
 * memory.
 */
export const DEFAULT_POOL_SIZE = 20;

/** Other programs may reload the whole nftables ruleset or the sysctls at any time, without a notification. */
const REPAIR_INTERVAL_MS = 30_000;

/** Pod networking of a Linux host: namespaces wired by CNI plugins, host ports by an nftables table. */
export class HostNetwork implements PodNetwork {
  readonly #options: HostNetworkOptions;
  readonly #dependencies: HostNetworkDependencies;
  readonly #names: InstanceNames;
  readonly #podCidr: PodCidr;
  readonly #podCidr6: PodCidr | undefined;
  readonly #records: SandboxRecords;
  readonly #ports: PortAllocator;
  readonly #table: PortTables;
  #access: AccessTable | undefined;
  readonly #claims = new Map<string, SandboxRecord>();
  /** Operations in progress by pod. The next call for the same pod waits for them. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #maker: SandboxMaker | undefined;
  #pool: SandboxPool | undefined;
  #cancelRepair: (() => void) | undefined;
  #closed = false;

  constructor(options: HostNetworkOptions, dependencies: HostNetworkDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#names = instanceNames(options.instance);
    this.#podCidr = parsePodCidr(options.podCidr);
    this.#podCidr6 = options.podCidr6 === undefined ? undefined : parsePodCidr6(options.podCidr6);
    this.#records = new SandboxRecords(join(options.dataDir, "sandboxes"));
    this.#ports = new PortAllocator(options.hostPorts, dependencies.probePort, dependencies.random);
    this.#table = new PortTables({
      names: this.#names,
      podCidrs: this.#podCidrs.map(({ text }) => text),
      run: dependencies.run,
      onProblem: (event, error) => this.#warn(event, error),
    });
  }

  /** The bridge's address, at which pods reach the host. */
  get gateway(): string {
    return this.#podCidr.gateway;
  }

  get #podCidrs(): readonly PodCidr[] {
    return this.#podCidr6 === undefined ? [this.#podCidr] : [this.#podCidr, this.#podCidr6];
  }

  async start(known: readonly KnownPod[], signal: AbortSignal): Promise<readonly FoundPod[]> {
    const maker = await this.#setUpHost(signal);
    const { run, noteDamage } = this.#dependencies;
    const { claims, spare, removed } = await adoptSandboxes(known, {
      ...{ names: this.#names, run, records: this.#records, maker, noteDamage },
      asReachable: (record) => this.#asReachable(record),
      isIpv6: this.#podCidr6 !== undefined,
      poolSize: this.#options.poolSize,
    });
    for (const [podUid, record] of claims) this.#claims.set(podUid, record);
    if (signal.aborted) throw aborted("start");
    const found = await findForgotten(known, claims, { run, table: this.#names.table });
    const foundPorts = new Map(found.map(({ podUid, ports = [] }) => [podUid, ports]));
    for (const pod of known)
      this.#adoptPorts({ ...pod, ports: [...pod.ports, ...(foundPorts.get(pod.podUid) ?? [])] });
    await this.#table.replace();
    const { access } = this.#options;
    const gateways = this.#podCidrs.map(({ gateway }) => gateway);
    // Created before any pod starts, so that the limits apply from the first packet.
    if (access) this.#access = await AccessTable.open({ names: this.#names, access, gateways, run });
    this.#dependencies.log.info({
      event: "network-started",
      pods: known.length,
      sandboxes: this.#claims.size,
      spare: spare.length,
      removed,
    });
    const { clock } = this.#dependencies;
    this.#maker = maker;
    this.#pool = new SandboxPool({
      size: this.#options.poolSize,
      clock,
      make: () => maker.make(),
      onError: (error) => this.#warn("sandbox-not-prepared", error),
    });
    this.#pool.start(spare);
    this.#repairLater();
    return found;
  }

  async attach(podUid: string, signal: AbortSignal): Promise<PodSandbox> {
    const { pool } = this.#started();
    return this.#inTurn(podUid, async () => {
      const present = await this.#presentClaim(podUid);
      if (present !== undefined) return sandboxOf(podUid, present);
      if (signal.aborted) throw aborted("attach");
      const acquired = await pool.acquire();
      if (signal.aborted) {
        pool.release(acquired);
        throw aborted("attach");
      }
      const claimed = { ...acquired, podUid };
      // Written to disk before anything can run in the sandbox. If that fails, the sandbox is returned to the pool;
      // otherwise it would have no owner until the next start.
      await this.#records.write(claimed).catch((error) => {
        pool.release(acquired);
        throw error;
      });
      this.#claims.set(podUid, claimed);
      return sandboxOf(podUid, claimed);
    });
  }

  async check(sandbox: PodSandbox): Promise<boolean> {
    return (await this.findLost([sandbox])).length === 0;
  }

  async findLost(sandboxes: readonly PodSandbox[]): Promise<readonly PodSandbox[]> {
    const { maker } = this.#started();
    const made = sandboxes.filter((sandbox) => !isHostNetwork(sandbox));
    const claimed = made.flatMap((sandbox) => this.#claimOf(sandbox) ?? []);
    const intact = new Set((await maker.intact(claimed)).map((record) => record.podUid));
    return made.filter((sandbox) => !intact.has(sandbox.podUid) || !this.#claimOf(sandbox));
  }

  async detach(podUid: string, signal: AbortSignal): Promise<void> {
    const { maker } = this.#started();
    return this.#inTurn(podUid, async () => {
      if (signal.aborted) throw aborted("detach");
      await this.#table.delete(podUid);
      const record = this.#claims.get(podUid);
      if (record !== undefined) {
        await maker.remove(record.namespace);
        await this.#forgetOwnPeers(record);
        this.#claims.delete(podUid);
      }
      this.#ports.release(podUid);
    });
  }

  allocatePorts(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]> {
    return this.#ports.allocate(podUid, desired);
  }

  acquireHostPorts(podUid: string, desired: readonly PortRequest[]): Promise<readonly PortMapping[]> {
    return this.#ports.allocateOwn(podUid, desired);
  }

  keepPorts(podUid: string, mappings: readonly PortMapping[]): void {
    this.#ports.keepOnly(podUid, mappings);
  }

  async publish(sandbox: PodSandbox, mappings: readonly PortMapping[], signal: AbortSignal): Promise<void> {
    this.#started();
    if (signal.aborted) throw aborted("publish");
    await this.#table.set(sandbox.podUid, sandbox, mappings);
  }

  async unpublish(podUid: string, signal: AbortSignal): Promise<void> {
    this.#started();
    if (signal.aborted) throw aborted("unpublish");
    await this.#table.delete(podUid);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRepair?.();
    await this.#pool?.close();
    await Promise.allSettled(this.#turns.values());
    await this.#table.settle();
  }

  async #setUpHost(signal: AbortSignal): Promise<SandboxMaker> {
    const { dataDir, cniDirectory } = this.#options;
    const { run } = this.#dependencies;
    for (const plugin of ["bridge", "host-local"]) await assertPlugin(cniDirectory, plugin);
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const [links, routes] = await Promise.all([listLinks(run), listRoutes(run)]);
    await this.#assertIpv6();
    for (const cidr of this.#podCidrs)
      assertNoOverlap(this.#names.bridge, cidr, cidr === this.#podCidr ? routes : await listRoutes(run, 6));
    if (signal.aborted) throw aborted("start");
    await ensureBridge(run, this.#names.bridge, this.#podCidrs, links);
    await this.#setSysctls();
    await this.#warnOfBlockedForwarding();
    const mtu = uplinkMtu(links, routes);
    const leaseDir = join(dataDir, "leases");
    const cni = new Cni({
      names: this.#names,
      podCidr: this.#podCidr,
      podCidr6: this.#podCidr6,
      pluginDir: cniDirectory,
      leaseDir,
      ...(mtu === undefined ? {} : { mtu }),
      run,
    });
    const leases = new LeaseDirectory(leaseDir, this.#names.cniNetwork);
    return new SandboxMaker({
      names: this.#names,
      podCidr: this.#podCidr,
      cni,
      leases,
      records: this.#records,
      run,
      noteDamage: this.#dependencies.noteDamage,
    });
  }

  async #assertIpv6(): Promise<void> {
    if (this.#podCidr6 === undefined || (await hasIpv6())) return;
    const message = "this host's kernel has no IPv6: enable it, or remove podCidr6";
    throw new NetworkError("SETUP_FAILED", message, { retryable: false });
  }

  /**
   * Returns the record without an IPv6 address of a former network, which is no longer routed. The pod keeps its other
   * address.
   */
  #asReachable({ address6, ...rest }: SandboxRecord): SandboxRecord {
    const isOurs = address6 !== undefined && this.#podCidr6 && containsIp(this.#podCidr6, address6);
    return isOurs ? { ...rest, address6 } : rest;
  }

  async #warnOfBlockedForwarding(): Promise<void> {
    const families = this.#podCidrs.map(({ text }) => familyOf(text));
    const tables = await tablesDroppingForwards(this.#dependencies.run, families);
    if (tables.length > 0) this.#dependencies.log.warn({ event: "firewall-drops-forwarded-traffic", tables });
  }

  async #setSysctls(): Promise<void> {
    const { dataDir } = this.#options;
    const { bridge } = this.#names;
    const desired = {
      [IP_FORWARD]: "1",
      [routeLocalnet(bridge)]: "1",
      ...(await sysctlsAgainstRouters(bridge)),
      ...(this.#podCidr6 === undefined ? {} : await sysctlsForIpv6(dataDir, bridge)),
    };
    const changed = await setSysctls(dataDir, desired);
    if (changed.length > 0) this.#dependencies.log.info({ event: "sysctls-set", changed });
  }

  /** Returns the record of exactly this sandbox, not of another one of the same pod. */
  #claimOf({ podUid, namespacePath: path, address }: PodSandbox): SandboxRecord | undefined {
    const record = this.#claims.get(podUid);
    if (record === undefined || namespacePath(record.namespace) !== path) return undefined;
    return record.address === address ? record : undefined;
  }

  /** Returns the pod's sandbox if it is intact. Removes the remains of a broken one. */
  async #presentClaim(podUid: string): Promise<SandboxRecord | undefined> {
    const { maker } = this.#started();
    const record = this.#claims.get(podUid);
    if (record === undefined || (await maker.intact([record])).length === 1) return record;
    this.#dependencies.log.warn({ event: "sandbox-broken", podUid, namespace: record.namespace });
    await this.#table.delete(podUid);
    await maker.remove(record.namespace);
    this.#claims.delete(podUid);
    return undefined;
  }

  #adoptPorts({ podUid, ports }: KnownPod): void {
    const heldByOthers = this.#ports.hold(podUid, ports);
    if (heldByOthers.length > 0)
      this.#dependencies.log.warn({ event: "host-ports-held-twice", podUid, ports: heldByOthers });
    const record = this.#claims.get(podUid);
    const own = ports.filter((mapping) => !heldByOthers.includes(mapping));
    if (record !== undefined) this.#table.preset(podUid, record, own);
  }

  #repairLater(): void {
    if (this.#closed) return;
    this.#cancelRepair = this.#dependencies.clock.schedule(REPAIR_INTERVAL_MS, async () => {
      try {
        if (await this.#table.repair())
          this.#dependencies.log.warn({ event: "host-port-table-put-back", table: this.#names.table });
        if (await this.#access?.repair())
          this.#dependencies.log.warn({ event: "pod-access-table-put-back", table: this.#names.accessTable });
        await this.#setSysctls();
        await repairSpare(this.#started(), this.#dependencies.log);
      } catch (error) {
        this.#warn("network-not-repaired", error);
      }
      this.#repairLater();
    });
  }

  /** Removes the kernel's connection entries of the pod's UDP ports, and releases the ports. */
  async #forgetOwnPeers(record: SandboxRecord): Promise<void> {
    try {
      for (const address of addressesOf(record))
        await forgetConnections(
          this.#dependencies.run,
          ["-p", "udp", "--orig-src", address],
          familyOf(address),
        );
    } catch (error) {
      this.#warn("conntrack-failed", error);
    }
  }

  #started(): { maker: SandboxMaker; pool: SandboxPool } {
    if (this.#maker === undefined || this.#pool === undefined || this.#closed) {
      throw new NetworkError("SETUP_FAILED", "the network is not started", { retryable: true });
    }
    return { maker: this.#maker, pool: this.#pool };
  }

  #inTurn<Result>(podUid: string, run: () => Promise<Result>): Promise<Result> {
    const result = (this.#turns.get(podUid) ?? Promise.resolve()).then(run);
    const turn = result.catch(() => undefined);
    this.#turns.set(podUid, turn);
    void turn.then(() => {
      if (this.#turns.get(podUid) === turn) this.#turns.delete(podUid);
    });
    return result;
  }

  #warn(event: string, error: unknown): void {
    this.#dependencies.log.warn({ event, error: messageOf(error) });
  }
}

function aborted(call: string): NetworkError {
  return new NetworkError("ABORTED", `${call}: aborted`, { retryable: true });
}
