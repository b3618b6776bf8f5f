import { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import type { Logger } from "pino";
import type { EventRecorder } from "../../events/event.ts";
import { batches, type Piece } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import { serviceAddressKey } from "../../model/keys.ts";
import type { Change } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";
import type { Compare, Store } from "../../store/index.ts";
import type { Clock } from "../clock.ts";
import { Loop } from "../loop.ts";
import { announcingNodes, concernsAnnouncing, hostAddresses } from "./announcing-nodes.ts";
import type { IpRange } from "./ip-range.ts";
import { type AddressedService, type AddressStep, nextReleaseMs, planAddresses } from "./plan.ts";
import { wantedIps } from "./wanted-ips.ts";

/** What addresses of services are taken from. */
export interface AddressRanges {
  /** One for each family. */
  readonly virtualIps: readonly IpRange[];
  readonly loadBalancerIps: readonly IpRange[];
  readonly nodePorts: { readonly first: number; readonly last: number };
}

export interface AddressControllerOptions {
  readonly store: Store;
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventRecorder;
  readonly addresses: AddressRanges;
}

const key = "addresses";

/** Gives services their addresses and node ports. All in one place, so that no two get the same. */
export class AddressController {
  readonly #options: AddressControllerOptions;
  readonly #loop: Loop;
  readonly #unsubscribe: () => void;
  /** Why a service lacks an address, as it was last told, by `namespace/name`. */
  readonly #refused = new Map<string, string>();
  /** Whether there is a load balancer, and so what becomes of nodes matters. */
  #announced = false;

  constructor(options: AddressControllerOptions) {
    this.#options = options;
    this.#loop = new Loop({
      name: "addresses",
      reconcile: () => this.#reconcile(),
      clock: options.clock,
      log: options.log,
    });
    this.#unsubscribe = options.state.subscribe((changes) => {
      if (changes.some((change) => this.#concerns(change))) this.#loop.wake(key);
    });
    this.#loop.wake(key);
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.close();
  }

  async #reconcile(): Promise<number | undefined> {
    const { state, clock, addresses, store } = this.#options;
    const entries = state.serviceAddresses.all();
    const records = entries.map(({ record }) => record);
    const steps = planAddresses({
      ...addresses,
      services: servicesOf(state),
      records,
      nodes: announcingNodes(state),
      hosts: hostAddresses(state),
      nowMs: clock.nowMs(),
    });
    this.#announced = records.some(({ loadBalancerIps }) => loadBalancerIps.length > 0);
    this.#tell(steps);
    let reached = 0;
    for (const part of batches(steps.flatMap((step) => pieceOf(step, state) ?? []))) {
      const { revision } = await store.txn(
        part.flatMap(({ compares }) => compares),
        part.flatMap(({ ops }) => ops),
      );
      // Where something changed meanwhile, that change has woken the loop again.
      reached = revision;
    }
    await state.reached(reached);
    const nextMs = nextReleaseMs(records);
    return nextMs === undefined ? undefined : Math.max(1_000, nextMs - clock.nowMs());
  }

  #concerns(change: Change): boolean {
    if (change.kind === "node") return this.#announced && concernsAnnouncing(change.before, change.after);
    if (change.kind === "service-address") return true;
    return change.kind === "resource" && (change.after ?? change.before)?.record.kind === "service";
  }

  /** Each problem once, until it is another one. */
  #tell(steps: readonly AddressStep[]): void {
    const now = new Map<string, string>();
    for (const step of steps) {
      if (step.type !== "refuse") continue;
      const { namespace, name, why } = step;
      const about = `${namespace}/${name}`;
      now.set(about, why);
      if (this.#refused.get(about) === why) continue;
      this.#options.log.warn({ service: about, why }, "service lacks an address");
      this.#options.events.record({
        namespace,
        kind: "service",
        name,
        type: "Warning",
        reason: "AddressMissing",
        message: why,
      });
    }
    this.#refused.clear();
    for (const [about, why] of now) this.#refused.set(about, why);
  }
}

function servicesOf(state: State): AddressedService[] {
  return state.resources().flatMap(({ record }) => {
    const spec = record.resource?.spec;
    if (record.deleting || spec?.$case !== "service") return [];
    const { namespace, name } = record;
    const { type, ports, annotations } = spec.value;
    const loadBalancerIps = wantedIps(annotations);
    return [{ namespace, name, type: type === "" ? "ClusterIP" : type, ports, loadBalancerIps }];
  });
}

function pieceOf(step: AddressStep, state: State): Piece | undefined {
  if (step.type === "refuse") return undefined;
  const { namespace, name } = step.type === "write" ? step.record : step;
  const at = serviceAddressKey(namespace, name);
  const entry = state.serviceAddresses.get(at);
  const compare: Compare =
    entry === undefined
      ? { kind: "absent", key: at }
      : { kind: "modRevision", key: at, revision: entry.revision };
  return step.type === "forget"
    ? { compares: [compare], ops: [{ kind: "delete", key: at }] }
    : {
        compares: [compare],
        ops: [{ kind: "put", key: at, value: encodeRecord(ServiceAddressRecord, step.record) }],
      };
}
