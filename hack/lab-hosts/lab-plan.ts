import { SetupError } from "../lib/setup-error.ts";

/** A host of a lab as it is planned. Its address and names never change, whatever happens to it. */
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
}

/** The network of every lab. Labs don't see each other, so that they can have the same addresses. */
export const LAB_GATEWAY = "10.77.0.1";
export const LAB_PREFIX_LENGTH = 24;
/** The network of commands, for kinds of hosts that need one. */
export const CONTROL_GATEWAY = "10.78.0.1";

/** A booted host costs about 300 MB of memory; more of them than this is a mistake. */
export const MAX_LAB_HOSTS = 32;

const FIRST_AGENT_OCTET = 11;
const COORDINATOR_OCTET = 10;
const ZONES = 3;

/** Plans hosts `h1`, `h2`, … over three zones, with a rack for each three hosts. */
export function planHosts({ count, coordinatorOwnHost }: LabPlanOptions): readonly LabHost[] {
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
      address: addressOf(FIRST_AGENT_OCTET + index),
      runsCoordinator: !coordinatorOwnHost && index === 0,
      runsAgent: true,
      labels: { zone: `z${(index % ZONES) + 1}`, rack: `r${Math.floor(index / ZONES) + 1}` },
    }),
  );
  const coordinator: LabHost = {
    name: "coordinator",
    address: addressOf(COORDINATOR_OCTET),
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

/** Returns the name if it can be part of names in the kernel and of paths. */
export function checkLabName(name: string): string {
  if (!/^[a-z][a-z0-9]{0,15}$/.test(name))
    throw new SetupError(
      "BAD_USAGE",
      `--name ${name} is not valid`,
      "give up to 16 small letters and digits that begin with a letter",
    );
  return name;
}

function addressOf(octet: number): string {
  return LAB_GATEWAY.replace(/\d+$/, String(octet));
}
