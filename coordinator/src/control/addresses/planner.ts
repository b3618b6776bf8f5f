import type { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import { type Announcer, type AnnouncingNode, chooseAnnouncers } from "./announcer.ts";
import {
  type AddressedService,
  type AddressRanges,
  type AddressStep,
  type Draft,
  draftOf,
  stepsOf,
  Taken,
} from "./draft.ts";

/** Longer than names, connections and caches of clients live. */
export const keepReleasedMs = 3_600_000;

export interface AddressPlan {
  readonly steps: AddressStep[];
  /** The services that were looked at; of the others nothing is new. */
  readonly keys: readonly string[];
}

/** Handles one service; returns undefined after an error, which is reported. */
export type Guard = <T>(service: AddressedService, step: () => T) => T | undefined;

/**
 * Decides who is to have which address. It is told each change of services, records and nodes, and looks only at the services that the
 * changes concern: those that changed, those that were refused something when something is given back, and those with a load balancer
 * when one of them or a node changes.
 */
export class AddressPlanner {
  readonly #ranges: AddressRanges;
  readonly #guard: Guard;
  readonly #services = new Map<string, AddressedService>();
  readonly #records = new Map<string, ServiceAddressRecord>();
  readonly #taken = new Taken();
  /** Services to look at. */
  readonly #dirty = new Set<string>();
  /** Services that lack something. */
  readonly #refused = new Set<string>();
  /** Services that have or want an address of a load balancer. */
  readonly #balanced = new Set<string>();
  /** By service that is gone: since when its addresses are kept for it. */
  readonly #released = new Map<string, number>();
  #nodes: readonly AnnouncingNode[] = [];

  constructor(ranges: AddressRanges, guard: Guard = (_, step) => step()) {
    this.#ranges = ranges;
    this.#guard = guard;
  }

  /** Whether there is a load balancer, and so what becomes of nodes matters. */
  get isAnnouncing(): boolean {
    return this.#balanced.size > 0;
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
      // What it had may be what others were refused.
      for (const refused of this.#refused) this.#dirty.add(refused);
    }
    if (record === undefined) this.#records.delete(key);
    else {
      this.#records.set(key, record);
      this.#taken.add(record);
    }
    const releasedMs = toEpochMs(record?.releasedAt);
    if (releasedMs === undefined) this.#released.delete(key);
    else this.#released.set(key, releasedMs);
    this.#dirty.add(key);
    this.#sort(key);
  }

  /** `hosts`: nodes by the addresses that are their own. */
  setNodes(nodes: readonly AnnouncingNode[], hosts: ReadonlyMap<string, string>): void {
    this.#nodes = nodes;
    this.#taken.hosts = hosts;
    for (const key of this.#balanced) this.#dirty.add(key);
    for (const key of this.#refused) this.#dirty.add(key);
  }

  /** Has the service looked at again: what was decided for it could not be written. */
  touch(key: string): void {
    this.#dirty.add(key);
  }

  /** When time alone can change the plan next; undefined: never. */
  nextMs(): number | undefined {
    let leastMs = Number.POSITIVE_INFINITY;
    for (const releasedMs of this.#released.values())
      leastMs = Math.min(leastMs, releasedMs + keepReleasedMs);
    return leastMs === Number.POSITIVE_INFINITY ? undefined : leastMs;
  }

  /** What to write for the services that changes concern. */
  plan(nowMs: number): AddressPlan {
    for (const [key, releasedMs] of this.#released)
      if (releasedMs + keepReleasedMs <= nowMs) this.#dirty.add(key);
    // Each announcer is chosen by what the others have.
    if ([...this.#dirty].some((key) => this.#balanced.has(key)))
      for (const key of this.#balanced) this.#dirty.add(key);
    // Always in the same order: who comes first decides who gets what is short, and which node announces it.
    const keys = [...this.#dirty].sort();
    this.#dirty.clear();
    const steps = keys.flatMap((key) => this.#releaseOf(key, nowMs));
    const drafts = keys.flatMap((key) => this.#draftOf(key) ?? []);
    const announcers = this.#announcersOf(drafts);
    for (const draft of drafts) steps.push(...this.#stepsOf(draft, announcers.get(draft.key)));
    // Nothing of it is so before it is written, and it may never be.
    for (const { record } of drafts) this.#taken.delete(record);
    for (const { before } of drafts) if (before !== undefined) this.#taken.add(before);
    return { steps, keys };
  }

  #releaseOf(key: string, nowMs: number): AddressStep[] {
    const record = this.#records.get(key);
    const service = this.#services.get(key);
    if (record === undefined || (service !== undefined && service.type !== "Headless")) return [];
    this.#refused.delete(key);
    const { namespace, name } = record;
    const releasedMs = toEpochMs(record.releasedAt);
    if (releasedMs === undefined)
      return [{ type: "write", record: { ...record, releasedAt: toTimestamp(nowMs) } }];
    return releasedMs + keepReleasedMs <= nowMs ? [{ type: "forget", namespace, name }] : [];
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
    return announced.length === 0 ? new Map() : chooseAnnouncers(announced, this.#nodes);
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
    // The others' announcers may change with one that goes, too.
    if (balanced || this.#balanced.has(key)) for (const other of this.#balanced) this.#dirty.add(other);
    if (balanced) this.#balanced.add(key);
    else this.#balanced.delete(key);
  }
}
