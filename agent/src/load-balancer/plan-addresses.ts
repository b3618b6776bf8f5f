import { type AddressedLink, interfaceFor } from "./connected-networks.ts";

/** An address that this host has to announce. */
export interface WantedAddress {
  readonly ip: string;
  /** Whether no other node could announce the address. The kernel then keeps it without a lease. */
  readonly alone: boolean;
}

/** An address that this agent gave to the host. */
export interface HeldAddress {
  readonly ip: string;
  readonly interface: string;
}

export interface AddressPlanInput {
  readonly wanted: readonly WantedAddress[];
  readonly held: readonly HeldAddress[];
  readonly links: readonly AddressedLink[];
  /** The operator's setting; undefined: that of the network in which the address is. */
  readonly interface: string | undefined;
  /** Addresses that another node announces by now. */
  readonly yielded: ReadonlySet<string>;
  /** Whether new ones are taken on: the rules for services are there. */
  readonly started: boolean;
}

export type AddressStep =
  | { readonly type: "drop"; readonly held: HeldAddress; readonly present: boolean }
  /** `isNew`: neighbours need an announcement. Without a lease the kernel keeps the address for ever. */
  | {
      readonly type: "hold";
      readonly held: HeldAddress;
      readonly leaseSeconds: number | undefined;
      readonly isNew: boolean;
    };

export interface AddressPlan {
  readonly steps: readonly AddressStep[];
  readonly problems: readonly string[];
}

/**
 * The kernel drops an address that was not renewed for this long, because a host with a dead agent can't learn that another node
 * took over. It is several times the interval of renewals, and longer than an agent takes to restart on a busy host.
 */
export const LEASE_SECONDS = 30;

/** Returns the steps from the host's present addresses to the desired ones. The host's own are never touched. Pure. */
export function planAddresses(input: AddressPlanInput): AddressPlan {
  const { wanted, held, links, yielded } = input;
  const problems: string[] = [];
  const isOn = ({ ip, interface: name }: HeldAddress): boolean =>
    links.some(({ ifname, addr_info }) => ifname === name && addr_info.some(({ local }) => local === ip));
  const holds = wanted.flatMap(({ ip, alone }): AddressStep[] => {
    if (yielded.has(ip)) return [];
    const name = input.interface ?? interfaceFor(ip, links);
    if (name === undefined) {
      problems.push(
        `load balancer ${ip}: no interface of this host is in its network; the setting loadBalancer.interface names one`,
      );
      return [];
    }
    const mine = { ip, interface: name };
    const known = held.some((it) => it.ip === ip && it.interface === name);
    const present = isOn(mine);
    if (
      !known &&
      links.some(({ addr_info }) => addr_info.some(({ local }) => local === ip)) &&
      !held.some((it) => it.ip === ip && isOn(it))
    ) {
      problems.push(
        `load balancer ${ip}: this host has the address already, by itself; take it out of the pool`,
      );
      return [];
    }
    const isNew = !known || !present;
    if (isNew && !input.started) return [];
    return [{ type: "hold", held: mine, leaseSeconds: alone ? undefined : LEASE_SECONDS, isNew }];
  });
  const kept = new Set(holds.flatMap((step) => (step.type === "hold" ? [keyOf(step.held)] : [])));
  const waiting = new Set(
    input.started ? [] : wanted.filter(({ ip }) => !yielded.has(ip)).map(({ ip }) => ip),
  );
  const drops = held
    .filter((it) => !kept.has(keyOf(it)) && !waiting.has(it.ip))
    .map((it): AddressStep => ({ type: "drop", held: it, present: isOn(it) }));
  // An address that moves between interfaces is taken off one before the other has it.
  return { steps: [...drops, ...holds], problems };
}

function keyOf({ ip, interface: name }: HeldAddress): string {
  return `${ip} ${name}`;
}
