import { type AddressedLink, interfaceFor } from "./connected-networks.ts";

/** An address that this host has to announce. */
export interface DesiredAddress {
  readonly ip: string;
  /** Whether no other node can announce the address. The kernel then keeps it without a lease. */
  readonly alone: boolean;
}

/** An address that this agent has added to the host. */
export interface HeldAddress {
  readonly ip: string;
  readonly interface: string;
}

export interface AddressPlanInput {
  readonly desired: readonly DesiredAddress[];
  readonly held: readonly HeldAddress[];
  readonly links: readonly AddressedLink[];
  /** The operator's setting. Undefined: the interface of the address's network. */
  readonly interface: string | undefined;
  /** Addresses that another node already announces. */
  readonly yielded: ReadonlySet<string>;
  /** Whether new addresses may be added, because the rules for services exist. */
  readonly started: boolean;
}

export type AddressStep =
  | { readonly type: "drop"; readonly held: HeldAddress; readonly present: boolean }
  /** `isNew`: neighbours need an announcement. Without a lease the kernel keeps the address indefinitely. */
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
 * The kernel removes an address whose lease was not renewed for this long, because a host with a dead agent can't
 * notice that another node took over. It is several times the interval of renewals, and longer than the restart of an
 * agent on a busy host.
 */
export const LEASE_SECONDS = 30;

/**
 * Returns the steps from the host's current addresses to the desired ones. The host's own addresses are never changed.
 * Pure.
 */
export function planAddresses(input: AddressPlanInput): AddressPlan {
  const { desired, held, links, yielded } = input;
  const problems: string[] = [];
  const isOn = ({ ip, interface: name }: HeldAddress): boolean =>
    links.some(({ ifname, addr_info }) => ifname === name && addr_info.some(({ local }) => local === ip));
  const holds = desired.flatMap(({ ip, alone }): AddressStep[] => {
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
        `load balancer ${ip}: this host already has the address as its own; remove it from the pool`,
      );
      return [];
    }
    const isNew = !known || !present;
    if (isNew && !input.started) return [];
    return [{ type: "hold", held: mine, leaseSeconds: alone ? undefined : LEASE_SECONDS, isNew }];
  });
  const kept = new Set(holds.flatMap((step) => (step.type === "hold" ? [keyOf(step.held)] : [])));
  const waiting = new Set(
    input.started ? [] : desired.filter(({ ip }) => !yielded.has(ip)).map(({ ip }) => ip),
  );
  const drops = held
    .filter((it) => !kept.has(keyOf(it)) && !waiting.has(it.ip))
    .map((it): AddressStep => ({ type: "drop", held: it, present: isOn(it) }));
  // An address that moves between interfaces is removed from one before it is added to the other.
  return { steps: [...drops, ...holds], problems };
}

function keyOf({ ip, interface: name }: HeldAddress): string {
  return `${ip} ${name}`;
}
