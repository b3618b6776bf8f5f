import type { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import { type Announcer, chooseAnnouncers, isHealthyNode } from "./announcer.ts";
import {
  type AddressedService,
  type AddressRanges,
  type AddressStep,
  type Draft,
  draftOf,
  stepsOf,
  UsedAddresses,
} from "./draft.ts";
import { type AnnouncingNode, differences, type Network, NodeNetworks } from "./node-networks.ts";

/**
 * The time for which a released address stays reserved for its service. It is longer than clients cache names and keep
 * connections.
 */
export const KEEP_RELEASED_MS = 3_600_000;

export interface AddressPlan {
  readonly steps: AddressStep[];
  /** The evaluated services. The others have not changed. */
  readonly keys: readonly string[];
}

/** Runs a step for one service. Returns undefined after an error, which it reports. */
export type RunGuarded = <T>(service: AddressedService, step: () => T) => T | undefined;

/**
 * Assigns addresses incrementally. It receives each change of services, records and nodes, and evaluates only the affected
 * services: those that changed, those with an unmet request when an address becomes free, and those with a load balancer
 * whose announcing node changed or could change.
 */
export class AddressPlanner {
  readonly #ranges: AddressRanges;
  readonly #guard: RunGuarded;
  readonly #services = new Map<string, AddressedService>();
  readonly #records = new Map<string, ServiceAddressRecord>();
  readonly #taken = new UsedAddresses();
  /** Keys of the services to evaluate. */
  readonly #dirty = new Set<string>();
  /** Keys of services without a requested address or port. */
  readonly #refused = new Set<string>();
  /** Keys of services that have or request a load balancer address. */
  readonly #balanced = new Set<string>();
  /** Keys of the services whose addresses a node announces according to the records, by node. */
  readonly #announcedBy = new Map<string, Set<string>>();
  /** Keys of services whose announcing node is missing, lost or drained, so that another node may replace it. */
  readonly #unsettled = new Set<string>();
  readonly #nodes = new NodeNetworks();
  /** The time at which each removed service released its addresses, by the service's key. */
  readonly #released = new Map<string, number>();

  constructor(ranges: AddressRanges, guard: RunGuarded = (_, step) => step()) {
    this.#ranges = ranges;
    this.#guard = guard;
  }

  /** Reports whether there are services to evaluate. */
  get isDirty(): boolean {
    return this.#dirty.size > 0;
  }

  setService(key: string, service: AddressedService | undefined): void {
    if (service === undefined) this.#services.delete(key);
    else this.#services.set(key, service);
    this.#dirty.add(key);
    this.#sort(key);
  }

  setRecord(key: string, record: ServiceAddressRecord | undefined): void {
    const before = this.#records.get(key);
    if (before !== undefined) {
      this.#taken.delete(before);
      this.#announcedBy.get(before.announcedBy)?.delete(key);
      if (this.#announcedBy.get(before.announcedBy)?.size === 0) this.#announcedBy.delete(before.announcedBy);
      // A released address may satisfy a request that was refused before.
      for (const refused of this.#refused) this.#dirty.add(refused);
    }
    if (record === undefined) this.#records.delete(key);
    else {
      this.#records.set(key, record);
      this.#taken.add(record);
      if (record.announcedBy !== "" && record.releasedAt === undefined)
        this.#announcedBy.set(
          record.announcedBy,
          (this.#announcedBy.get(record.announcedBy) ?? new Set()).add(key),
        );
    }
    const releasedMs = toEpochMs(record?.releasedAt);
    if (releasedMs === undefined) this.#released.delete(key);
    else this.#released.set(key, releasedMs);
    this.#dirty.add(key);
    this.#sort(key);
  }

  /** Sets all nodes. `hosts` holds the name of the node for each address of a host. */
  setNodes(nodes: readonly AnnouncingNode[], hosts: ReadonlyMap<string, string>): void {
    const announcing = new Map(nodes.map((node) => [node.name, node]));
    const names = new Set([
      ...this.#nodes.names(),
      ...this.#taken.nodes(),
      ...announcing.keys(),
      ...hosts.values(),
    ]);
    for (const name of names) {
      this.setNode(name, announcing.get(name));
      this.setHost(
        name,
        [...hosts].flatMap(([ip, node]) => (node === name ? ip : [])),
      );
    }
  }

  /**
   * Sets the node's state and networks, which decide the addresses that it can announce. Undefined: the node announces
   * none.
   */
  setNode(name: string, node: AnnouncingNode | undefined): void {
    const before = this.#nodes.get(name);
    const changed = differences(before?.networks ?? [], node?.networks ?? []);
    if (changed.length === 0 && isSame(before, node)) return;
    // In a network that has more nodes before and after the change, `alone` stays false for all services.
    const small = changed.filter((network) => this.#nodes.sizeOf(network) <= 2);
    this.#nodes.set(name, node);
    small.push(...changed.filter((network) => this.#nodes.sizeOf(network) <= 2));
    for (const key of this.#announcedBy.get(name) ?? []) this.#dirty.add(key);
    const networks = [...(before?.networks ?? []), ...(node?.networks ?? [])];
    for (const key of this.#unsettled) if (this.#isIn(key, networks)) this.#dirty.add(key);
    if (changed.length === 0) return;
    for (const key of this.#balanced) {
      // Whether two addresses have a common node depends on every node of their networks, not on the number of nodes.
      const several = (this.#records.get(key)?.loadBalancerIps.length ?? 0) > 1;
      if (this.#isIn(key, several ? changed : small)) this.#dirty.add(key);
    }
  }

  /** Sets the node's own addresses, which are never assigned to services. */
  setHost(name: string, addresses: readonly string[]): void {
    if (this.#taken.setHost(name, addresses)) for (const key of this.#refused) this.#dirty.add(key);
  }

  #isIn(key: string, networks: readonly Network[]): boolean {
    const { loadBalancerIps: ips = [] } = this.#records.get(key) ?? {};
    return networks.some((network) => ips.some((ip) => network.has(ip)));
  }

  /** Schedules another evaluation of a service whose decision could not be written. */
  touch(key: string): void {
    this.#dirty.add(key);
  }

  /** Returns the next time at which the plan can change without an event; undefined: never. */
  nextMs(): number | undefined {
    let leastMs = Number.POSITIVE_INFINITY;
    for (const releasedMs of this.#released.values())
      leastMs = Math.min(leastMs, releasedMs + KEEP_RELEASED_MS);
    return leastMs === Number.POSITIVE_INFINITY ? undefined : leastMs;
  }

  /** Returns the steps for the services to evaluate, and clears their marks. */
  plan(nowMs: number): AddressPlan {
    for (const [key, releasedMs] of this.#released)
      if (releasedMs + KEEP_RELEASED_MS <= nowMs) this.#dirty.add(key);
    // A fixed order makes the result deterministic: earlier services get scarce addresses, and the load of nodes depends on
    // the order.
    const keys = [...this.#dirty].sort();
    this.#dirty.clear();
    for (const key of keys) this.#unsettled.delete(key);
    const steps = keys.flatMap((key) => this.#releaseOf(key, nowMs));
    const drafts = keys.flatMap((key) => this.#draftOf(key) ?? []);
    const announcers = this.#announcersOf(drafts);
    for (const draft of drafts) steps.push(...this.#stepsOf(draft, announcers.get(draft.key)));
    // Allocations take effect once they are written, which may fail. Restores the recorded ones.
    for (const { record } of drafts) this.#taken.delete(record);
    for (const { before } of drafts) if (before !== undefined) this.#taken.add(before);
    return { steps, keys };
  }

  #releaseOf(key: string, nowMs: number): AddressStep[] {
    const record = this.#records.get(key);
    const service = this.#services.get(key);
    if (record === undefined || (service !== undefined && service.type !== "Headless")) return [];
    const { namespace, name } = record;
    const releasedMs = toEpochMs(record.releasedAt);
    if (releasedMs === undefined)
      return [{ type: "write", record: { ...record, releasedAt: toTimestamp(nowMs) } }];
    return releasedMs + KEEP_RELEASED_MS <= nowMs ? [{ type: "forget", namespace, name }] : [];
  }

  #draftOf(key: string): Draft | undefined {
    const service = this.#services.get(key);
    this.#refused.delete(key);
    if (service === undefined || service.type === "Headless") return undefined;
    const draft = this.#guard(service, () =>
      draftOf(service, this.#records.get(key), this.#taken, this.#ranges),
    );
    if (draft === undefined) this.#refused.add(key);
    return draft;
  }

  #announcersOf(drafts: readonly Draft[]): ReadonlyMap<string, Announcer> {
    const announced = drafts.flatMap(({ key, record: { loadBalancerIps: ips, announcedBy: before } }) =>
      ips.length === 0 ? [] : { key, ips, before },
    );
    const found = chooseAnnouncers(announced, this.#nodes, this.#loadsBeside(announced));
    for (const [key, { node }] of found) if (!isHealthyNode(this.#nodes.get(node))) this.#unsettled.add(key);
    return found;
  }

  /** Returns the number of services that each node announces, without counting the given ones. */
  #loadsBeside(services: readonly { readonly key: string; readonly before: string }[]): Map<string, number> {
    if (services.length === 0) return new Map();
    const loads = new Map([...this.#announcedBy].map(([node, { size }]) => [node, size]));
    for (const { key, before } of services)
      if (this.#announcedBy.get(before)?.has(key)) loads.set(before, (loads.get(before) ?? 0) - 1);
    return loads;
  }

  #stepsOf(draft: Draft, announcer: Announcer | undefined): AddressStep[] {
    const steps = stepsOf(draft, announcer);
    if (steps.some(({ type }) => type === "refuse")) this.#refused.add(draft.key);
    return steps;
  }

  #sort(key: string): void {
    const balanced =
      this.#services.get(key)?.type === "LoadBalancer" ||
      (this.#records.get(key)?.loadBalancerIps.length ?? 0) > 0;
    if (balanced) this.#balanced.add(key);
    else this.#balanced.delete(key);
  }
}

/** Reports whether both states of a node, in the same networks, let it announce the same addresses. */
function isSame(a: AnnouncingNode | undefined, b: AnnouncingNode | undefined): boolean {
  return (
    (a === undefined) === (b === undefined) &&
    a?.ready === b?.ready &&
    a?.cordoned === b?.cordoned &&
    a?.draining === b?.draining
  );
}
