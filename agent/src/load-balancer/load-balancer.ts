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
import { type AddressStep, type HeldAddress, planAddresses, type WantedAddress } from "./plan-addresses.ts";

export interface LoadBalancerOptions {
  /** The records of those of the host's addresses that this agent or an earlier one added. */
  readonly held: HeldRecords;
  readonly services: ServicesView;
  /** Reports that the services are unknown because their file was lost: the host then keeps the addresses it holds. */
  readonly servicesLost?: () => boolean;
  /** The name of this host. */
  readonly node: string;
  /** The interface on which addresses are announced; undefined: the interface of their network. */
  readonly interface: string | undefined;
  /** The families for which the host leads services' clients to pods. */
  readonly families: readonly IpFamily[];
  readonly clock: Clock;
  /** [0, 1). */
  readonly random: () => number;
  readonly run: RunCommand;
  readonly onEvent: (event: string, fields: object) => void;
  readonly onProblem: (event: string, error: unknown) => void;
}

/** A few times in a lease. */
const RENEW_MS = 5_000;
/** Repeats announcements, because broadcasts get lost, and a node that has not yet received the change may answer in between. */
const ANNOUNCE_AGAIN_MS = [250, 1_000, 2_000, 4_000, 8_000, 16_000, 28_000];
/**
 * After this node has released an address to another, it waits up to this long before it probes whether the address is free
 * again.
 */
const YIELD_MS = 15_000;
/** The number of concurrent probes. Each takes two seconds, and all of them must fit into a lease. */
const PROBES_AT_ONCE = 32;

const HOW_TO_PROBE =
  "whether another host has taken it over can't be found out, which needs busybox (IPv4) and the package ndisc6 (IPv6)";

/**
 * Adds the load balancers' addresses to the host that announces them. The coordinator chooses the host. While the coordinator is
 * unreachable its last choice holds, until another host answers for the address: that choice is newer.
 */
export class LoadBalancer {
  readonly #options: LoadBalancerOptions;
  /** Addresses that another host announces, with the moment from which to ask again, by the monotonic clock. */
  readonly #yielded = new Map<string, number>();
  readonly #announcing = new Map<string, () => void>();
  #started = false;
  #isCurrent = false;
  #problems: readonly string[] = [];
  /** Addresses of which it could not be found out whether another host has them. */
  readonly #unprobed = new Set<string>();
  #working: Promise<void> | undefined;
  #again = false;
  #cancelRenewal: (() => void) | undefined;
  #closed = false;

  /** Takes over the addresses that an earlier life of the agent added to the host. */
  constructor(options: LoadBalancerOptions) {
    this.#options = options;
    void this.update();
  }

  /** The kernel's rules for services are there: addresses may come. */
  start(): Promise<void> {
    this.#started = true;
    return this.update();
  }

  /** Sets whether the known services are those that the coordinator has now. */
  setCurrent(isCurrent: boolean): void {
    if (this.#isCurrent === isCurrent) return;
    this.#isCurrent = isCurrent;
    // Nothing changes while the coordinator is away: it may be back at once.
    if (isCurrent) void this.update();
  }

  /** Services may have changed. Resolves when the host has what it should, or could not get it. */
  update(): Promise<void> {
    this.#again = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  /** Empty: everything works. */
  problems(): readonly string[] {
    return this.#problems;
  }

  /** Addresses stay: the next agent goes on with them, or else their leases end. */
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
      if (this.#wanted().length === 0 && this.#options.held.held.length === 0) {
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

  #wanted(): WantedAddress[] {
    const { services, servicesLost, held, node, families } = this.#options;
    if (servicesLost?.()) return held.held.map(({ ip }) => ({ ip, alone: false }));
    const isOurs = (ip: string): boolean => families.some((family) => isOfFamily(ip, family));
    const wanted = new Map<string, WantedAddress>();
    for (const { loadBalancerIps, announcedBy, announcedAlone } of services.services.values()) {
      if (announcedBy !== node) continue;
      for (const ip of loadBalancerIps.filter(isOurs)) wanted.set(ip, { ip, alone: announcedAlone });
    }
    return [...wanted.values()];
  }

  async #settle(): Promise<void> {
    const { run, interface: setting, held, onProblem } = this.#options;
    await held.check().catch((error) => onProblem("held-addresses-not-recorded", error));
    const links = await listLinks(run);
    if (this.#isCurrent) {
      this.#yielded.clear();
      this.#unprobed.clear();
    } else await this.#lookForOthers(this.#wanted(), links);
    const { steps, problems } = planAddresses({
      wanted: this.#wanted(),
      links,
      held: this.#options.held.held,
      interface: setting,
      yielded: new Set(this.#yielded.keys()),
      started: this.#started,
    });
    const failures = await this.#takeAll(steps);
    const unprobed = [...this.#unprobed].map((ip) => `load balancer ${ip}: ${HOW_TO_PROBE}`);
    const told = [...problems, ...failures, ...unprobed];
    for (const problem of told.filter((it) => !this.#problems.includes(it)))
      this.#options.onProblem("load-balancer-impaired", problem);
    this.#problems = told;
  }

  /** Runs the steps and returns their errors. The next renewal repeats failed steps. */
  async #takeAll(steps: readonly AddressStep[]): Promise<string[]> {
    const failures: string[] = [];
    const fresh: HeldAddress[] = [];
    const holds = steps.flatMap((step) => (step.type === "hold" ? [step.held] : []));
    await this.#options.held.add(holds).catch((error) => failures.push(`load balancer: ${wordsOf(error)}`));
    for (const step of steps) {
      // An address without a record is not added. Addresses that the host has already are renewed.
      if (step.type === "hold" && !this.#options.held.has(step.held)) continue;
      try {
        await this.#take(step);
        if (step.type === "hold" && step.isNew) fresh.push(step.held);
      } catch (error) {
        failures.push(`load balancer ${step.held.ip}: ${wordsOf(error)}`);
      }
    }
    // Once all are there: who asks is answered already.
    for (const held of fresh) {
      this.#options.onEvent("load-balancer-announced", { ...held });
      await this.#announce(held, 0);
    }
    return failures;
  }

  async #take(step: AddressStep): Promise<void> {
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

  /** Probes for other hosts with the addresses, because a cut-off node gets no message when it was replaced. */
  async #lookForOthers(wanted: readonly WantedAddress[], links: readonly Link[]): Promise<void> {
    const { clock, interface: setting } = this.#options;
    const nowMs = clock.monotonicMs();
    const due = wanted.flatMap(({ ip, alone }): HeldAddress[] => {
      const name = setting ?? interfaceFor(ip, links);
      return alone || name === undefined || (this.#yielded.get(ip) ?? nowMs) > nowMs
        ? []
        : [{ ip, interface: name }];
    });
    const hardware = new Set(links.flatMap(({ address }) => address?.toLowerCase() ?? []));
    const waiting = [...due];
    const workers = Array.from({ length: Math.min(PROBES_AT_ONCE, due.length) }, async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
        await this.#lookForOther(next, hardware);
    });
    await Promise.all(workers);
  }

  async #lookForOther(address: HeldAddress, hardware: ReadonlySet<string>): Promise<void> {
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
    // By chance, so that of two who give way to each other one is first to take it again.
    this.#yielded.set(ip, clock.monotonicMs() + random() * YIELD_MS);
  }
}

function wordsOf(error: unknown): string {
  return messageOf(error);
}
