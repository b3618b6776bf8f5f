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
  /** The time from the leader's end until another one decided. */
  readonly decidedMs: number;
  /** The time until a client of a look-up on the killed one knew the endpoints again. */
  readonly lookupMs: number;
}

/** Kills the coordinator that leads, and starts it again once another one decides. */
export async function killLeader(t: TestContext, { members }: Scene): Promise<Round> {
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
  const next = await leaderOf(others);
  const decidedMs = await decidedAt(next, killedAtMs).then((atMs) => atMs - killedAtMs);
  for (const [at, { member, lives, lookup }] of open.entries()) {
    lookup.close();
    // A coordinator that the machine gave no time for longer than its lease has begun again.
    if (member === leader || member.lives !== lives) continue;
    assert.deepEqual(
      lookup.updates.slice(before[at]),
      [],
      "a look-up on another one goes on without a message",
    );
  }
  t.diagnostic(`decided after ${decidedMs} ms, looked up after ${lookupMs} ms`);
  await leader.start();
  return { decidedMs, lookupMs };
}

/** Waits for the log line with which the coordinator begins to decide, and returns its time. */
export function decidedAt(member: Member, afterMs: number): Promise<number> {
  const find = (): number | undefined =>
    member
      .log()
      .split("\n")
      .filter((line) => line.includes('"decisions-begin"'))
      .map((line) => (JSON.parse(line) as { readonly time: number }).time)
      .find((atMs) => atMs > afterMs);
  return waitFor(find, { what: "another coordinator decides", limitMs: LIMIT_MS });
}

/** Asks one after the other until one knows the endpoints, as a client does that has lost its look-up. */
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
