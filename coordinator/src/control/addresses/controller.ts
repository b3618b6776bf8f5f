import type { Log } from "@forage/common/log";
import { type ResourceRecord, ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { ObjectFaults } from "../../faults/object-faults.ts";
import { batches, type StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import type { EventRecorder } from "../../model/event.ts";
import { serviceAddressKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, NodeEntry } from "../../state/entries.ts";
import type { Compare, Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import { joined, tryWrite } from "../write.ts";
import { announcingNode, ownAddresses } from "./announcing-nodes.ts";
import type { AddressedService, AddressRanges, AddressStep } from "./draft.ts";
import { type AddressPlan, AddressPlanner } from "./planner.ts";
import { requestedIps } from "./requested-ips.ts";

export type { AddressRanges } from "./draft.ts";

export interface AddressControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly addresses: AddressRanges;
}

const KEY = "addresses";
/** The limit of the wait until the next evaluation, because the wall clock may be set in between. */
const LONGEST_WAIT_MS = 60_000;

/**
 * Assigns addresses and node ports to services. A single loop does so, so that no two services get the same address or
 * port.
 */
export class AddressController {
  readonly #options: AddressControllerOptions;
  readonly #loop: Loop;
  /** The last reported reasons for missing addresses, by `namespace/name`. */
  readonly #refused = new Map<string, string>();
  readonly #faults: ObjectFaults;
  readonly #planner: AddressPlanner;

  constructor(options: AddressControllerOptions) {
    const { state, clock, log, events } = options;
    this.#options = options;
    this.#faults = new ObjectFaults({ loop: "addresses", log, events });
    this.#planner = new AddressPlanner(options.addresses, ({ namespace, name }, step) =>
      this.#faults.attempt({ kind: "service", namespace, name }, step),
    );
    this.#loop = new Loop({
      name: "addresses",
      reconcile: () => this.#reconcile(),
      clock,
      log,
      state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const { record } of state.serviceAddresses.all()) this.#planner.setRecord(keyOf(record), record);
    for (const { record } of state.resources()) this.#setService(record);
    for (const node of state.nodes()) this.#setNode(node.name, node);
    this.#loop.wake(KEY);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    let wake = false;
    for (const change of changes) wake = this.#follow(change) || wake;
    if (wake) this.#loop.wake(KEY);
  }

  async #reconcile(): Promise<number | undefined> {
    const { clock } = this.#options;
    const plan = this.#planner.plan(clock.nowMs());
    this.#recordRefusals(plan);
    const writes = plan.steps.flatMap((step) => this.#pieceOf(step) ?? []);
    await this.#write(writes);
    const nextMs = this.#planner.nextMs();
    return nextMs === undefined
      ? undefined
      : Math.min(LONGEST_WAIT_MS, Math.max(1_000, nextMs - clock.nowMs()));
  }

  /** Writes the decisions. Services whose write fails are evaluated again. */
  async #write(writes: readonly AddressPiece[]): Promise<void> {
    const open = new Set(writes);
    try {
      for (const part of batches(writes)) {
        if (await tryWrite(joined(part), this.#options)) for (const write of part) open.delete(write);
      }
    } finally {
      for (const { service } of open) this.#planner.touch(service);
    }
    if (open.size > 0) this.#loop.wake(KEY);
  }

  /** Passes the change to the planner. Returns true if services may need another evaluation. */
  #follow(change: Change): boolean {
    switch (change.type) {
      case "node":
        this.#setNode((change.after ?? change.before)?.name ?? "", change.after);
        return this.#planner.isDirty;
      case "service-address": {
        const entry = change.after ?? change.before;
        if (entry !== undefined) this.#planner.setRecord(keyOf(entry.record), change.after?.record);
        return entry !== undefined;
      }
      case "resource": {
        const record = (change.after ?? change.before)?.record;
        if (record?.kind !== "service") return false;
        if (change.after === undefined) this.#planner.setService(keyOf(record), undefined);
        else this.#setService(change.after.record);
        return true;
      }
      default:
        return false;
    }
  }

  #setNode(name: string, node: NodeEntry | undefined): void {
    this.#planner.setNode(name, announcingNode(node));
    this.#planner.setHost(name, ownAddresses(node));
  }

  #setService(record: ResourceRecord): void {
    if (record.kind !== "service") return;
    const { namespace, name } = record;
    const service = this.#faults.attempt(
      { kind: "service", namespace, name },
      () => serviceOf(record) ?? null,
    );
    // A service that can't be decoded keeps its addresses.
    if (service === undefined) return;
    this.#planner.setService(keyOf(record), service ?? undefined);
  }

  /** Reports each problem once, until it changes. */
  #recordRefusals({ steps, keys }: AddressPlan): void {
    const now = new Map<string, string>();
    for (const step of steps) {
      if (step.type !== "refuse") continue;
      const { namespace, name, why } = step;
      const about = keyOf(step);
      now.set(about, why);
      if (this.#refused.get(about) === why) continue;
      this.#options.log.warn({ event: "service-without-address", service: about, why });
      this.#options.events.record({
        namespace,
        kind: "service",
        name,
        type: "Warning",
        reason: "AddressMissing",
        message: why,
      });
    }
    for (const about of keys) this.#refused.delete(about);
    for (const [about, why] of now) this.#refused.set(about, why);
  }

  #pieceOf(step: AddressStep): AddressPiece | undefined {
    if (step.type === "refuse") return undefined;
    const { namespace, name } = step.type === "write" ? step.record : step;
    const service = keyOf({ namespace, name });
    const write = this.#faults.attempt({ kind: "service", namespace, name }, () =>
      pieceOf(step, this.#options.state),
    );
    return write && { ...write, service };
  }
}

interface AddressPiece extends StoreWrite {
  /** `namespace/name`. */
  readonly service: string;
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

function serviceOf(record: ResourceRecord): AddressedService | undefined {
  const spec = record.resource?.spec;
  if (record.deleting || spec?.$case !== "service") return undefined;
  const { namespace, name } = record;
  const { type, ports, annotations } = spec.value;
  const loadBalancerIps = requestedIps(annotations);
  return { namespace, name, type: type === "" ? "ClusterIP" : type, ports, loadBalancerIps };
}

function pieceOf(step: AddressStep, state: ClusterView): StoreWrite | undefined {
  if (step.type === "refuse") return undefined;
  const { namespace, name } = step.type === "write" ? step.record : step;
  const at = serviceAddressKey(namespace, name);
  const entry = state.serviceAddresses.get(at);
  const compare: Compare =
    entry === undefined
      ? { type: "absent", key: at }
      : { type: "mod-revision", key: at, revision: entry.revision };
  return step.type === "forget"
    ? { compares: [compare], ops: [{ type: "delete", key: at }] }
    : {
        compares: [compare],
        ops: [{ type: "put", key: at, value: encodeRecord(ServiceAddressRecord, step.record) }],
      };
}
