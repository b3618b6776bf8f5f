import { SetupError } from "../lib/setup-error.ts";

/** A planned host of a lab. Its address and names never change. */
export interface LabHost {
  readonly name: string;
  readonly address: string;
  readonly runsCoordinator: boolean;
  readonly runsAgent: boolean;
  /** Labels of the node. */
  readonly labels: Readonly<Record<string, string>>;
}

export interface LabPlanOptions {
  /** The number of hosts with an agent. */
  readonly count: number;
  /** Whether the coordinator has a host without an agent. Otherwise it shares the first agent's. */
  readonly coordinatorOwnHost: boolean;
  /** The address of this machine in the network of the hosts. Default: LAB_GATEWAY. */
  readonly gateway?: string;
}

/** The network of every lab on bridges. Labs are isolated from each other, so they can have the same addresses. */
export const LAB_GATEWAY = "10.77.0.1";
export const LAB_PREFIX_LENGTH = 24;
/** The network of commands, for kinds of hosts that need one. */
export const CONTROL_GATEWAY = "10.78.0.1";

/** The maximum number of hosts. A booted host needs about 300 MB of memory, so a larger number is a mistake. */
export const MAX_LAB_HOSTS = 32;

const GATEWAY_OCTET = 1;
const FIRST_AGENT_OCTET = 11;
const COORDINATOR_OCTET = 10;
const ZONES = 3;

/** Plans hosts `h1`, `h2`, … over three zones, with a rack for each three hosts. */
export function planHosts({
  count,
  coordinatorOwnHost,
  gateway = LAB_GATEWAY,
}: LabPlanOptions): readonly LabHost[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_LAB_HOSTS)
    throw new SetupError(
      "BAD_USAGE",
      `${count} hosts are not possible`,
      `give a number from 1 to ${MAX_LAB_HOSTS}`,
    );
  const agents = Array.from(
    { length: count },
    (_, index): LabHost => ({
      name: `h${index + 1}`,
      address: addressOf(gateway, FIRST_AGENT_OCTET + index),
      runsCoordinator: !coordinatorOwnHost && index === 0,
      runsAgent: true,
      labels: { zone: `z${(index % ZONES) + 1}`, rack: `r${Math.floor(index / ZONES) + 1}` },
    }),
  );
  const coordinator: LabHost = {
    name: "coordinator",
    address: addressOf(gateway, COORDINATOR_OCTET),
    runsCoordinator: true,
    runsAgent: false,
    labels: {},
  };
  return coordinatorOwnHost ? [coordinator, ...agents] : agents;
}

/** Returns the host's address in the network of commands. */
export function controlAddress({ address }: LabHost): string {
  return CONTROL_GATEWAY.replace(/\d+$/, address.split(".").at(-1) ?? "");
}

/** Returns the name, or throws if it can't be part of names in the kernel and of paths. */
export function checkLabName(name: string): string {
  if (!/^[a-z][a-z0-9]{0,15}$/.test(name))
    throw new SetupError(
      "BAD_USAGE",
      `--name ${name} is not valid`,
      "give up to 16 small letters and digits that begin with a letter",
    );
  return name;
}

/** Returns the address of this machine in the network of the host. */
export function gatewayOf({ address }: LabHost): string {
  return addressOf(address, GATEWAY_OCTET);
}

function addressOf(inNetwork: string, octet: number): string {
  return inNetwork.replace(/\d+$/, String(octet));
}
