import type { IpFamily } from "@forage/common/ip";
import { messageOf } from "@forage/common/message-of";
import type { Clock } from "../clock.ts";
import { isOfFamily } from "../network/family-words.ts";
import { type Link, listLinks } from "../network/host-links.ts";
import type { RunCommand } from "../network/run-command.ts";
import type { ServicesView } from "../services/known-services.ts";
import { interfaceFor } from "./connected-networks.ts";
import type { HeldRecords } from "./held-addresses-file.ts";
import { announceAddress, probeAddress, putAddress, removeAddress } from "./host-addresses.ts";
import { type AddressStep, type DesiredAddress, type HeldAddress, planAddresses } from "./plan-addresses.ts";

export interface LoadBalancerOptions {
  /** The records of addresses that this or an earlier agent has added to the host. */
  readonly held: HeldRecords;
  readonly services: ServicesView;
  /**
   * Reports whether the services are unknown because their file was lost. The host then keeps the addresses it holds.
   */
  readonly servicesLost?: () => boolean;
  /** The name of this host. */
  readonly node: string;
  /** The interface on which addresses are announced. Undefined: the interface of their network. */
  readonly interface: string | undefined;
  /** The families in which the host serves clients of services. */
  readonly families: readonly IpFamily[];
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly run: RunCommand;
  readonly onEvent: (event: string, fields: object) => void;
  readonly onProblem: (event: string, error: unknown) => void;
}

/** Several times per lease. */
const RENEW_MS = 5_000;
/**
 * Delays of repeated announcements, because broadcasts get lost, and a node that has not yet received the change may
 * answer in between.
 */
const ANNOUNCE_AGAIN_MS = [250, 1_000, 2_000, 4_000, 8_000, 16_000, 28_000];
/**
 * After this node has released an address to another, it waits at most this long before it probes whether the address
 * is free again.
 */
const YIELD_MS = 15_000;
/** The number of concurrent probes. Each takes two seconds, and all must fit into a lease. */
const PROBES_AT_ONCE = 32;

const HOW_TO_PROBE =
  "whether another host has taken it over can't be found out, which needs busybox (IPv4) and the package ndisc6 (IPv6)";

/**
 * Adds load balancer addresses to the host that announces them. The coordinator chooses the host. While the coordinator
 * is unreachable, its last choice applies until another host answers for the address, which means a newer choice.
 */
export class LoadBalancer {
  readonly #options: LoadBalancerOptions;
  /** Addresses that another host announces, with the time of the next probe, by the monotonic clock. */
  readonly #yielded = new Map<string, number>();
  readonly #announcing = new Map<string, () => void>();
  #started = false;
  #isCurrent = false;
  #problems: readonly string[] = [];
  /** Addresses whose probe failed. */
  readonly #unprobed = new Set<string>();
  #working: Promise<void> | undefined;
  #again = false;
  #cancelRenewal: (() => void) | undefined;
  #closed = false;

  /** Adopts the addresses that an earlier agent added to the host. */
  constructor(options: LoadBalancerOptions) {
    this.#options = options;
    void this.update();
  }

  /** Starts to add addresses, once the kernel has the rules for services. */
  start(): Promise<void> {
    this.#started = true;
    return this.update();
  }

  /** Sets whether the known services are the coordinator's current ones. */
  setCurrent(isCurrent: boolean): void {
    if (this.#isCurrent === isCurrent) return;
    this.#isCurrent = isCurrent;
    // Nothing changes while the coordinator is unreachable, because it may reconnect at once.
    if (isCurrent) void this.update();
  }

  /**
   * Called when services may have changed. Resolves when the host has the addresses it should have, or adding them
   * failed.
   */
  update(): Promise<void> {
    this.#again = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  /** Returns the problems; empty if everything works. */
  problems(): readonly string[] {
    return this.#problems;
  }

  /** Stops without removing addresses. The next agent adopts them, or their leases end. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRenewal?.();
    for (const cancel of this.#announcing.values()) cancel();
    await this.#working;
  }

  async #work(): Promise<void> {
    await Promise.resolve();
    while (this.#again && !this.#closed) {
      this.#again = false;
      this.#cancelRenewal?.();
      this.#cancelRenewal = undefined;
      if (this.#desired().length === 0 && this.#options.held.held.length === 0) {
        this.#problems = [];
        this.#yielded.clear();
        continue;
      }
      try {
        await this.#settle();
      } catch (error) {
        this.#options.onProblem("load-balancer-not-settled", error);
      }
      if (!this.#closed)
        this.#cancelRenewal = this.#options.clock.schedule(RENEW_MS, () => void this.update());
    }
  }

  #desired(): DesiredAddress[] {
    const { services, servicesLost, held, node, families } = this.#options;
    if (servicesLost?.()) return held.held.map(({ ip }) => ({ ip, alone: false }));
    const isOurs = (ip: string): boolean => families.some((family) => isOfFamily(ip, family));
    const desired = new Map<string, DesiredAddress>();
    for (const { loadBalancerIps, announcedBy, announcedAlone } of services.services.values()) {
      if (announcedBy !== node) continue;
      for (const ip of loadBalancerIps.filter(isOurs)) desired.set(ip, { ip, alone: announcedAlone });
    }
    return [...desired.values()];
  }

  async #settle(): Promise<void> {
    const { run, interface: setting, held, onProblem } = this.#options;
    await held.check().catch((error) => onProblem("held-addresses-not-recorded", error));
    const links = await listLinks(run);
    if (this.#isCurrent) {
      this.#yielded.clear();
      this.#unprobed.clear();
    } else await this.#probeOtherOwners(this.#desired(), links);
    const { steps, problems } = planAddresses({
      desired: this.#desired(),
      links,
      held: this.#options.held.held,
      interface: setting,
      yielded: new Set(this.#yielded.keys()),
      started: this.#started,
    });
    const failures = await this.#runAll(steps);
    const unprobed = [...this.#unprobed].map((ip) => `load balancer ${ip}: ${HOW_TO_PROBE}`);
    const found = [...problems, ...failures, ...unprobed];
    for (const problem of found.filter((it) => !this.#problems.includes(it)))
      this.#options.onProblem("load-balancer-impaired", problem);
    this.#problems = found;
  }

  /** Runs the steps and returns their errors. The next renewal repeats failed steps. */
  async #runAll(steps: readonly AddressStep[]): Promise<string[]> {
    const failures: string[] = [];
    const fresh: HeldAddress[] = [];
    const holds = steps.flatMap((step) => (step.type === "hold" ? [step.held] : []));
    await this.#options.held
      .add(holds)
      .catch((error) => failures.push(`load balancer: ${errorTextOf(error)}`));
    for (const step of steps) {
      // An address that can't be recorded is not added. Addresses that the host already has are renewed.
      if (step.type === "hold" && !this.#options.held.has(step.held)) continue;
      try {
        await this.#run(step);
        if (step.type === "hold" && step.isNew) fresh.push(step.held);
      } catch (error) {
        failures.push(`load balancer ${step.held.ip}: ${errorTextOf(error)}`);
      }
    }
    // Announced only when all addresses are added, so that every client is answered.
    for (const held of fresh) {
      this.#options.onEvent("load-balancer-announced", { ...held });
      await this.#announce(held, 0);
    }
    return failures;
  }

  async #run(step: AddressStep): Promise<void> {
    const { run, onEvent } = this.#options;
    const { held } = step;
    if (step.type === "hold") {
      await putAddress(run, held, step.leaseSeconds);
      return;
    }
    this.#announcing.get(held.ip)?.();
    this.#announcing.delete(held.ip);
    if (step.present) await removeAddress(run, held);
    await this.#options.held.remove(held);
    onEvent("load-balancer-left", { ...held });
  }

  async #announce(held: HeldAddress, times: number): Promise<void> {
    const { run, clock, onProblem } = this.#options;
    const { ip } = held;
    this.#announcing.get(ip)?.();
    this.#announcing.delete(ip);
    const waitMs = ANNOUNCE_AGAIN_MS[times];
    if (waitMs !== undefined && !this.#closed)
      this.#announcing.set(
        ip,
        clock.schedule(waitMs, () => void this.#announce(held, times + 1)),
      );
    await announceAddress(run, held).catch((error) => onProblem("load-balancer-not-announced", error));
  }

  /** Probes whether other hosts have the addresses, because a disconnected node is not notified when it is replaced. */
  async #probeOtherOwners(desired: readonly DesiredAddress[], links: readonly Link[]): Promise<void> {
    const { clock, interface: setting } = this.#options;
    const nowMs = clock.monotonicMs();
    const due = desired.flatMap(({ ip, alone }): HeldAddress[] => {
      const name = setting ?? interfaceFor(ip, links);
      return alone || name === undefined || (this.#yielded.get(ip) ?? nowMs) > nowMs
        ? []
        : [{ ip, interface: name }];
    });
    const hardware = new Set(links.flatMap(({ address }) => address?.toLowerCase() ?? []));
    const waiting = [...due];
    const workers = Array.from({ length: Math.min(PROBES_AT_ONCE, due.length) }, async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
        await this.#probeOtherOwner(next, hardware);
    });
    await Promise.all(workers);
  }

  async #probeOtherOwner(address: HeldAddress, hardware: ReadonlySet<string>): Promise<void> {
    const { run, clock, random, onEvent } = this.#options;
    const { ip } = address;
    const claim = await probeAddress(run, address, hardware);
    if (claim === "unknown") this.#unprobed.add(ip);
    else this.#unprobed.delete(ip);
    // The coordinator may have reconnected meanwhile.
    if (this.#isCurrent) return;
    if (claim !== "taken") {
      this.#yielded.delete(ip);
      return;
    }
    if (!this.#yielded.has(ip)) onEvent("load-balancer-taken-over", { ...address });
    // A random delay, so that of two hosts that yield to each other one is the first to take the address again.
    this.#yielded.set(ip, clock.monotonicMs() + random() * YIELD_MS);
  }
}

function errorTextOf(error: unknown): string {
  return messageOf(error);
}
