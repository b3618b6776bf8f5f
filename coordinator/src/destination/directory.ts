import { keysOf } from "../endpoints/change-keys.ts";
import { TopicRegistry } from "../feed/topic-registry.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { AddressIndex } from "./address-index.ts";
import { HintsCache } from "./hints/hints-of.ts";

/** The services that have a virtual IP: one, or none where the address isn't one. */
export type VirtualIpLookup = (
  ip: string,
) => readonly { readonly namespace: string; readonly service: string }[];

export interface DirectoryOptions {
  readonly state: ClusterView;
  /** The cluster's domain, such as `cluster.local`. */
  readonly domain: string;
  /** Evaluated again whenever an address of a service changes, or a service that had one. */
  readonly virtualIps: VirtualIpLookup;
  /** Runs later, and lets the world outside in between: `setImmediate`. */
  readonly defer: (run: () => void) => void;
}

/** The state that all Destination streams share: the topics that they follow, fed by the view's changes. */
export class Directory {
  readonly state: ClusterView;
  readonly domain: string;
  readonly virtualIps: VirtualIpLookup;
  readonly board: TopicRegistry;
  readonly hints = new HintsCache();
  readonly addresses: AddressIndex;
  readonly #unsubscribe: () => void;

  constructor({ state, domain, virtualIps, defer }: DirectoryOptions) {
    this.state = state;
    this.domain = domain;
    this.virtualIps = virtualIps;
    this.board = new TopicRegistry({ defer });
    this.addresses = new AddressIndex(state);
    this.#unsubscribe = state.subscribe((changes) => {
      this.addresses.apply(changes);
      this.board.changed(keysOf(changes, state));
    });
  }

  close(): void {
    this.#unsubscribe();
  }
}
