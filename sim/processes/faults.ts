import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { leaderOf, type Member } from "../../coordinator/test/support/coordinator-cluster.ts";
import type { Lookup } from "../../coordinator/test/support/lookup.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import type { ApplyLoad } from "./apply-load.ts";
import { LIMIT_MS, type Scene, STILL } from "./scene.ts";

const RETRY_MS = 50;

export interface Round {
  /** The time from the leader's end until another coordinator decided. */
  readonly decidedMs: number;
  /** The time until a client that had a look-up on the killed coordinator knew the endpoints again. */
  readonly lookupMs: number;
}

/** On a busy machine the leader may change just before the test ends it. */
const TRIES_MAX = 10;

/**
 * Calls `play` until it has ended a coordinator that led. `play` returns undefined if another coordinator led by then.
 */
export async function untilPlayed<T>(play: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const played = await play();
    if (played !== undefined) return played;
  }
  throw new Error(`the lead changed ${TRIES_MAX} times before the leader was ended`);
}

/** Kills the leader, and restarts it once another coordinator decides. */
export function killLeader(t: TestContext, scene: Scene): Promise<Round> {
  return untilPlayed(() => tryToKillLeader(t, scene));
}

async function tryToKillLeader(t: TestContext, { members }: Scene): Promise<Round | undefined> {
  const leader = await leaderOf(members);
  const others = members.filter((member) => member !== leader);
  const open = await Promise.all(
    members.map(async (member) => ({ member, lookup: await lookedUp([member]), lives: member.lives })),
  );
  const before = open.map(({ lookup }) => lookup.updates.length);
  const reading = open.map(({ lookup }) => readOn(lookup));
  const killedAtMs = Date.now();
  leader.end("SIGKILL");
  await reading[members.indexOf(leader)];
  const again = await lookedUp(others);
  const lookupMs = Date.now() - killedAtMs;
  again.close();
  const decided = await decidedAt(others, killedAtMs);
  for (const [at, { member, lives, lookup }] of open.entries()) {
    lookup.close();
    // A coordinator that got no CPU time for longer than its lease has restarted.
    if (member === leader || member.lives !== lives) continue;
    assert.deepEqual(
      lookup.updates.slice(before[at]),
      [],
      "a look-up on another one goes on without a message",
    );
  }
  await leader.start();
  if (decided.type === "led-before") return undefined;
  const decidedMs = decided.atMs - killedAtMs;
  t.diagnostic(`decided after ${decidedMs} ms, looked up after ${lookupMs} ms`);
  return { decidedMs, lookupMs };
}

export type Decided =
  | { readonly type: "decided"; readonly atMs: number }
  /** The result if one of the coordinators already led. */
  | { readonly type: "led-before" };

/**
 * Waits until one of the coordinators logs that it begins to decide, and returns that time. Times are by the machine's
 * wall clock.
 */
export function decidedAt(members: readonly Member[], afterMs: number): Promise<Decided> {
  const find = async (): Promise<Decided | undefined> => {
    const times = members.flatMap((member) => timesOfDecisions(member)).filter((atMs) => atMs > afterMs);
    if (times.length > 0) return { type: "decided", atMs: Math.min(...times) };
    const since = await Promise.all(members.map((member) => member.leadsSinceMs()));
    return since.some((ms) => ms !== undefined && ms <= afterMs) ? { type: "led-before" } : undefined;
  };
  return waitFor(find, { what: "another coordinator decides", limitMs: LIMIT_MS });
}

function timesOfDecisions(member: Member): number[] {
  return member
    .log()
    .split("\n")
    .filter((line) => line.includes('"decisions-begin"'))
    .map((line) => (JSON.parse(line) as { readonly time: number }).time);
}

/** Asks the coordinators one after another until one knows the endpoints, like a client that has lost its look-up. */
export async function lookedUp(members: readonly Member[]): Promise<Lookup> {
  const limit = AbortSignal.timeout(LIMIT_MS);
  for (let at = 0; ; at++) {
    const member = members[at % members.length];
    if (member === undefined) throw new RangeError("there is no coordinator");
    const lookup = member.lookUp(STILL);
    const close = (): void => lookup.close();
    limit.addEventListener("abort", close, { once: true });
    const isThere = await lookup
      .until(() => lookup.endpoints.size === 2)
      .then(
        () => true,
        () => false,
      );
    limit.removeEventListener("abort", close);
    if (isThere) return lookup;
    const { updates, endpoints } = lookup;
    assert.ok(!limit.aborted, `${member.address} gave ${endpoints.size} endpoints in ${updates.join(", ")}`);
    lookup.close();
    await delay(RETRY_MS);
  }
}

export async function readOn(lookup: Lookup): Promise<void> {
  while (await lookup.read().catch(() => false));
}

/** Checks that everything acknowledged is stored, and that the hosts run what is stored. */
export async function untilComplete({ history, hosts, members }: Scene, load: ApplyLoad): Promise<void> {
  const what = "the history has everything that was acknowledged";
  await waitFor(() => load.problems(history.puts).length === 0, {
    ...{ what, limitMs: LIMIT_MS },
    explain: () => load.problems(history.puts).join("\n"),
  });
  assert.deepEqual(load.failures, []);
  const running = (): string =>
    hosts
      .flatMap(({ runtime }) => runtime.containers)
      .map(({ labels }) => labels["forage.dev/pod-uid"] ?? "")
      .sort()
      .join();
  const listed = async (): Promise<boolean> => {
    const answers = await Promise.all(members.map(podUids)).catch(() => []);
    return answers.length > 0 && answers.every((uids) => uids === running());
  };
  await waitFor(listed, { what: "all coordinators list the pods that run", limitMs: LIMIT_MS });
}

async function podUids(member: Member): Promise<string> {
  const all = { namespace: "", labels: {}, workload: "", node: "", name: "" };
  const { pods } = await member.operator().listPods(all);
  return pods
    .map(({ uid }) => uid)
    .sort()
    .join();
}
