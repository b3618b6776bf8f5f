import { keysOf } from "../endpoints/change-keys.ts";
import { TopicRegistry } from "../feed/topic-registry.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { AddressIndex } from "./address-index.ts";
import { HintsCache } from "./hints/hints-of.ts";

/**
 * Returns the services with a virtual IP: one, none if the address is not a virtual IP, or several
 * during a conflict.
 */
export type VirtualIpLookup = (
  ip: string,
) => readonly { readonly namespace: string; readonly service: string }[];

export interface DirectoryOptions {
  readonly state: ClusterView;
  /** The cluster's domain, such as `cluster.local`. */
  readonly domain: string;
  /** Looks up a virtual IP. Called again whenever an address of a service changes or is removed. */
  readonly virtualIps: VirtualIpLookup;
  /** Schedules work after pending I/O, like `setImmediate`. */
  readonly defer: (run: () => void) => void;
  /** Schedules work at the end of the current task. Default: `queueMicrotask`. */
  readonly soon?: (run: () => void) => void;
}

/**
 * The state that all Destination streams share: the topics to which they subscribe, updated by
 * changes of the cluster view.
 */
export class Directory {
  readonly state: ClusterView;
  readonly domain: string;
  readonly virtualIps: VirtualIpLookup;
  readonly topics: TopicRegistry;
  readonly hints = new HintsCache();
  readonly addresses: AddressIndex;
  readonly #unsubscribe: () => void;

  constructor({ state, domain, virtualIps, ...timing }: DirectoryOptions) {
    this.state = state;
    this.domain = domain;
    this.virtualIps = virtualIps;
    this.topics = new TopicRegistry(timing);
    this.addresses = new AddressIndex(state);
    this.#unsubscribe = state.subscribe((changes) => {
      this.addresses.apply(changes);
      if (this.topics.hasDependents) this.topics.changed(keysOf(changes, state));
    });
  }

  close(): void {
    this.#unsubscribe();
  }
}
