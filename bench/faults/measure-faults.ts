import { setTimeout } from "node:timers/promises";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { type MeasuredFleet, REPLICAS } from "./measured-fleet.ts";

/** The figures of one round: seconds, and shares of containers. */
export interface FaultFigures {
  /** Seconds from the kill of a container's process until all containers run. */
  readonly killed: number;
  /** Seconds from the power failure of a host until all containers run on the others. */
  readonly hostLost: number;
  /** Seconds from the partition of a host until all containers run on the others. */
  readonly cutOff: number;
  /** The share of the partitioned host's containers that continue to run. */
  readonly ranOn: number;
  /**
   * Seconds from the kill of a container's process on the partitioned host until another container runs there in its
   * place; Infinity if none did in time.
   */
  readonly killedWhileCutOff: number;
  /** Seconds from the end of the partition until surplus containers have stopped. */
  readonly healed: number;
  /** The share of a host's containers that survive the kill of its daemon. */
  readonly survived: number;
}

interface Container {
  readonly host: string;
  readonly id: string;
}

const LIMIT_MS = 240_000;
const EVERY_MS = 100;
/**
 * A partitioned host that has started no container by then counts as starting none. It is twelve times the delay of
 * either system before a restart.
 */
export const CUT_OFF_RESTART_LIMIT_MS = 60_000;

/** Causes each fault once. All hosts are ready before and after. */
export async function measureFaults(fleet: MeasuredFleet): Promise<FaultFigures> {
  await settled(fleet);
  const killed = await killContainer(fleet);
  await settled(fleet);
  const survived = await killDaemon(fleet);
  await settled(fleet);
  const partition = await cutOffHost(fleet);
  await settled(fleet);
  const hostLost = await powerOffHost(fleet);
  await settled(fleet);
  return { killed, survived, ...partition, hostLost };
}

async function killContainer(fleet: MeasuredFleet): Promise<number> {
  const host = await busiestHost(fleet);
  const [victim] = await runningOn(fleet, host);
  if (victim === undefined) throw new Error(`${host} runs no container`);
  const since = stopwatch();
  await ctr(fleet, host, ["tasks", "kill", "--signal", "SIGKILL", victim.id]);
  await until("all containers run again", async () => {
    const containers = await running(fleet);
    return containers.length === REPLICAS && !containers.some(({ id }) => id === victim.id);
  });
  return since();
}

async function killDaemon(fleet: MeasuredFleet): Promise<number> {
  const host = await busiestHost(fleet);
  const before = await runningOn(fleet, host);
  await fleet.lab.exec(host, ["systemctl", "kill", "--kill-who=main", "--signal=SIGKILL", fleet.unit]);
  await until(`${fleet.unit} is back`, async () => {
    const { stdout } = await fleet.lab.exec(host, ["systemctl", "is-active", fleet.unit], {
      allowFailure: true,
    });
    return stdout.trim() === "active";
  });
  await settled(fleet);
  return shareOf(before, await runningOn(fleet, host));
}

type PartitionFigures = Pick<FaultFigures, "cutOff" | "ranOn" | "killedWhileCutOff" | "healed">;

async function cutOffHost(fleet: MeasuredFleet): Promise<PartitionFigures> {
  const host = await busiestHost(fleet);
  const before = await runningOn(fleet, host);
  const sinceCut = stopwatch();
  await fleet.lab.partition([host]);
  await untilElsewhere(fleet, host);
  const cutOff = sinceCut();
  const ranOn = shareOf(before, await runningOn(fleet, host));
  const killedWhileCutOff = await killWhereCutOff(fleet, host);
  const sinceHealed = stopwatch();
  await fleet.lab.heal();
  await until("the surplus containers have stopped", async () => (await running(fleet)).length === REPLICAS);
  return { cutOff, ranOn, killedWhileCutOff, healed: sinceHealed() };
}

/** Kills one container of the partitioned host, which no other host can send orders. */
async function killWhereCutOff(fleet: MeasuredFleet, host: string): Promise<number> {
  const before = await runningOn(fleet, host);
  const [victim] = before;
  if (victim === undefined) return Number.POSITIVE_INFINITY;
  const since = stopwatch();
  await ctr(fleet, host, ["tasks", "kill", "--signal", "SIGKILL", victim.id]);
  while (since() * 1000 < CUT_OFF_RESTART_LIMIT_MS) {
    const now = await runningOn(fleet, host);
    if (now.length === before.length && !now.some(({ id }) => id === victim.id)) return since();
    await setTimeout(EVERY_MS);
  }
  return Number.POSITIVE_INFINITY;
}

async function powerOffHost(fleet: MeasuredFleet): Promise<number> {
  const host = await busiestHost(fleet);
  const since = stopwatch();
  await fleet.lab.powerOff(host);
  await untilElsewhere(fleet, host);
  const seconds = since();
  await fleet.lab.boot(host);
  return seconds;
}

function untilElsewhere(fleet: MeasuredFleet, host: string): Promise<unknown> {
  return until(`all containers run on other hosts than ${host}`, async () => {
    const containers = await running(fleet);
    return containers.filter((container) => container.host !== host).length === REPLICAS;
  });
}

async function settled(fleet: MeasuredFleet): Promise<void> {
  await until(`all hosts are ready, with ${REPLICAS} containers`, async () => {
    return (await fleet.isReady()) && (await running(fleet)).length === REPLICAS;
  });
}

async function busiestHost(fleet: MeasuredFleet): Promise<string> {
  const containers = await running(fleet);
  const count = (host: string): number => containers.filter((container) => container.host === host).length;
  const hosts = fleet.lab.hosts.filter(({ runsAgent }) => runsAgent).map(({ name }) => name);
  return hosts.toSorted((a, b) => count(b) - count(a))[0] ?? "";
}

/** Returns the running containers of all hosts that are on. */
async function running(fleet: MeasuredFleet): Promise<readonly Container[]> {
  const on = (await fleet.lab.running()).filter(({ runsAgent }) => runsAgent);
  return (await Promise.all(on.map(({ name }) => runningOn(fleet, name)))).flat();
}

/** Lists the running containers in containerd, which both systems use. Returns none while containerd starts. */
async function runningOn(fleet: MeasuredFleet, host: string): Promise<readonly Container[]> {
  const stdout = await ctr(fleet, host, ["tasks", "list"]);
  return stdout
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([id = "", , status]) => (status === "RUNNING" ? [{ host, id }] : []));
}

async function ctr(
  { lab, namespace }: MeasuredFleet,
  host: string,
  args: readonly string[],
): Promise<string> {
  const argv = ["ctr", "--namespace", namespace, ...args];
  return (await lab.exec(host, argv, { allowFailure: true })).stdout;
}

function shareOf(before: readonly Container[], after: readonly Container[]): number {
  const left = before.filter(({ id }) => after.some((container) => container.id === id));
  return left.length / before.length;
}

function stopwatch(): () => number {
  const startMs = performance.now();
  return () => (performance.now() - startMs) / 1000;
}

function until(what: string, ask: () => Promise<boolean>): Promise<unknown> {
  return waitFor(ask, { what, limitMs: LIMIT_MS, everyMs: EVERY_MS });
}
