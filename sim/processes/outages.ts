import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { status } from "@grpc/grpc-js";
import { podUidOf } from "../../agent/src/pods/container-name.ts";
import type { HostOfFakes } from "../../agent/test/host-of-fakes.ts";
import { leaderOf, type Member } from "../../coordinator/test/support/coordinator-cluster.ts";
import { wrongClock } from "../../hack/lib/set-clock.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { type ApplyLoad, aVersion } from "./apply-load.ts";
import { decidedAt, lookedUp, readOn, untilPlayed } from "./faults.ts";
import { LEARNING_HOST, LIMIT_MS, type Scene } from "./scene.ts";

/** With three coordinators, each becomes the leader within a few elections. */
const ELECTIONS_MAX = 50;
const PAUSE_MS = 10_000;
const ALL = { namespace: "", labels: {}, workload: "", node: "", name: "" };

export async function pauseLeader(t: TestContext, { members }: Scene, load: ApplyLoad): Promise<void> {
  await grows(load);
  const leader = await untilPlayed(() => pauseOnce(t, members));
  assert.match(leader.log(), /this coordinator has lost the lead/);
  await grows(load);
}

/** Returns the coordinator that was paused while it led; `undefined` if another one led by then. */
async function pauseOnce(t: TestContext, members: readonly Member[]): Promise<Member | undefined> {
  const leader = await leaderOf(members);
  const pausedAtMs = Date.now();
  const program = leader.end("SIGSTOP");
  const others = members.filter((member) => member !== leader);
  const decided = await decidedAt(others, pausedAtMs).catch((error: unknown) => {
    program.kill("SIGCONT");
    throw error;
  });
  if (decided.type === "decided") {
    t.diagnostic(`another one decided ${decided.atMs - pausedAtMs} ms after the pause had begun`);
    await until("the pause is over", () => Date.now() - pausedAtMs >= PAUSE_MS);
  }
  program.kill("SIGCONT");
  const { starts } = leader;
  // It can't write any more, and steps down without an end of its process.
  await until("it follows", async () => (await leader.leads()) === false);
  assert.equal(leader.starts, starts);
  return decided.type === "decided" ? leader : undefined;
}

export async function loseMember(t: TestContext, { members, etcd }: Scene, load: ApplyLoad): Promise<void> {
  await grows(load);
  const leader = await leaderOf(members);
  const [first] = etcd;
  await first?.kill();
  await grows(load);
  t.diagnostic(`the leader ${(await leaderOf(members)) === leader ? "stayed" : "changed"}`);
  await untilCounted(members, { up: etcd.length - 1, down: 1 });
  await first?.start();
  await untilCounted(members, { up: etcd.length, down: 0 });
}

/** Waits until the metrics of each coordinator report these numbers of etcd members. */
async function untilCounted(
  members: readonly Member[],
  { up, down }: { readonly up: number; readonly down: number },
): Promise<void> {
  const expected = [
    `forage_etcd_members{answers="true"} ${up}`,
    `forage_etcd_members{answers="false"} ${down}`,
  ];
  for (const member of members)
    await until(`the metrics at ${member.http} have ${expected.join(" and ")}`, async () => {
      const lines = (await member.metrics()).split("\n");
      return expected.every((line) => lines.includes(line));
    });
}

export async function loseMembers(_: TestContext, scene: Scene, load: ApplyLoad): Promise<void> {
  const { members, etcd } = scene;
  await grows(load);
  const lookups = await Promise.all(members.map((member) => lookedUp([member])));
  const before = lookups.map(({ updates }) => updates.length);
  for (const lookup of lookups) void readOn(lookup);
  const lost = etcd.slice(0, 2);
  await Promise.all(lost.map((member) => member.kill()));
  // The calls of clients only end when etcd answers.
  await withoutMajority(scene).finally(() => Promise.all(lost.map((member) => member.start())));
  for (const [at, lookup] of lookups.entries()) {
    assert.deepEqual(lookup.updates.slice(before[at]), [], "look-ups go on without a message");
    lookup.close();
  }
  await grows(load);
}

async function withoutMajority({ members, hosts }: Scene): Promise<void> {
  const request = aVersion("app-c", 1);
  const refused = async (member: Member): Promise<boolean> => {
    const error: unknown = await member.forage.applyResources(request).catch((it: unknown) => it);
    const { code, details = "" } = error as { readonly code?: number; readonly details?: string };
    return code === status.UNAVAILABLE && /store (is unreachable|did not answer in time)/.test(details);
  };
  const unready = async ({ http }: Member): Promise<boolean> =>
    /etcd has not answered for \d+ s/.test(await (await fetch(`http://${http}/readyz`)).text());
  // The leader may have changed just before the loss, so all are checked.
  const some = async (check: (member: Member) => Promise<boolean>): Promise<boolean> =>
    (await Promise.all(members.map(check))).includes(true);
  await until("writes fail with the reason", () => some(refused));
  await until("a coordinator is not ready, with the reason", () => some(unready));
  await until("reads go on", () =>
    some(async (member) => (await member.operator().listPods(ALL)).pods.length > 0),
  );
  for (const member of members) (await lookedUp([member])).close();
  await until("a host has restarted a container", restartsOne(hosts));
}

/**
 * Returns a check that ends a container and reports whether its host runs another one for the pod. If the pod is gone
 * because its host was about to stop it, the check uses another pod.
 */
function restartsOne(hosts: readonly HostOfFakes[]): () => boolean {
  let ended:
    | { readonly host: HostOfFakes; readonly uid: string | undefined; readonly id: string }
    | undefined;
  return () => {
    const left = ended?.host.runtime.containers.filter(({ labels }) => podUidOf(labels) === ended?.uid) ?? [];
    if (left.some(({ id, state }) => state === "running" && id !== ended?.id)) return true;
    if (left.length > 0) return false;
    const host = hosts.find(({ runtime }) => runtime.containers.some(isChanged));
    const container = host?.runtime.containers.findLast(isChanged);
    if (host === undefined || container === undefined) return false;
    ended = { host, uid: podUidOf(container.labels), id: container.id };
    host.runtime.exit(container.id, 1);
    return false;
  };
}

export async function cutFromEtcd(t: TestContext, scene: Scene, load: ApplyLoad): Promise<void> {
  const { members } = scene;
  await grows(load);
  const leader = await leaderOf(members);
  const others = members.filter((member) => member !== leader);
  const cutAtMs = Date.now();
  for (const way of scene.waysToEtcd(leader)) way.cut();
  try {
    const decided = await decidedAt(others, cutAtMs);
    // Otherwise the leader changed just before the cut, and a follower was cut off.
    if (decided.type === "decided") t.diagnostic(`another one decided after ${decided.atMs - cutAtMs} ms`);
    (await lookedUp([leader])).close();
  } finally {
    for (const way of scene.waysToEtcd(leader)) way.mend();
  }
  await until("it follows", async () => (await leader.leads()) === false);
  await leaderOf(members);
  await grows(load);
}

/** Cuts a coordinator off from the hosts, some of which are connected to it. */
export async function cutFromAgents(t: TestContext, scene: Scene, load: ApplyLoad): Promise<void> {
  const { members } = scene;
  await until("a host is connected", () => members.some((member) => hostsAt(scene, member).length > 0));
  const [member] = members.toSorted((a, b) => hostsAt(scene, b).length - hostsAt(scene, a).length);
  assert.ok(member);
  const cut = hostsAt(scene, member);
  t.diagnostic(`${cut.length} hosts are cut off`);
  const others = members.filter((it) => it !== member);
  for (const way of scene.waysOfHosts(member)) way.cut();
  for (const host of cut) {
    const isElsewhere = (): boolean => others.some((other) => hostsAt(scene, other).includes(host));
    await until(`host ${host} is connected to another one`, isElsewhere);
  }
  await until("all hosts are ready", async () => {
    const { nodes } = await member.operator().listNodes({});
    return nodes.length > 0 && nodes.every(({ ready }) => ready);
  });
  await grows(load);
  for (const way of scene.waysOfHosts(member)) way.mend();
}

/** Returns the indexes of the hosts that are connected to the coordinator and always use the relays. */
function hostsAt(scene: Scene, member: Member): readonly number[] {
  const ways = [...scene.waysOfHosts(member).entries()];
  return ways.filter(([at, { connections }]) => at !== LEARNING_HOST && connections > 0).map(([at]) => at);
}

/**
 * Upgrades the coordinators one after another from the previous version. Look-ups on the others continue without a
 * message.
 */
export async function upgradeAll(t: TestContext, scene: Scene, load: ApplyLoad): Promise<void> {
  const { members } = scene;
  for (const member of members) {
    await grows(load);
    const others = members.filter((it) => it !== member);
    const lookups = await Promise.all(
      others.map(async (other) => ({ other, lives: other.lives, lookup: await lookedUp([other]) })),
    );
    const before = lookups.map(({ lookup }) => lookup.updates.length);
    for (const { lookup } of lookups) void readOn(lookup);
    const still = scene.still();
    const program = member.end("SIGTERM");
    assert.equal(await program.exited, 0);
    member.environment = {};
    await member.start();
    await leaderOf(members);
    for (const [at, { other, lives, lookup }] of lookups.entries()) {
      lookup.close();
      // A coordinator that got no CPU time for longer than its lease has stepped down.
      if (other.lives !== lives) continue;
      assert.deepEqual(lookup.updates.slice(before[at]), [], "look-ups on others go on without a message");
    }
    assert.deepEqual(scene.still(), still, "no container was touched");
  }
  await grows(load);
  t.diagnostic(`${load.acknowledged.length} rollouts, ${load.retries} retries`);
}

/** Gives one coordinator after another a wrong clock, and waits until it leads with it. */
export function wrongClocks(offsetsSeconds: readonly number[]) {
  return async (t: TestContext, { members, hosts }: Scene, load: ApplyLoad): Promise<void> => {
    for (const offsetSeconds of offsetsSeconds) {
      const leader = await leaderOf(members);
      const wrong = members.find((member) => member !== leader);
      assert.ok(wrong);
      await wrong.end("SIGTERM").exited;
      await wrong.start(wrongClock(offsetSeconds));
      await until("the list says so", () => saysClock(leader, wrong, offsetSeconds));
      await grows(load);
      // The others are restarted at once, so agents and clients use both kinds of coordinators.
      const others = members.filter((member) => member !== wrong);
      for (let round = 0; (await leaderOf(members)) !== wrong; round++) {
        assert.ok(round < ELECTIONS_MAX, "it never came to lead");
        for (const other of others) {
          if ((await other.leads()) !== true) continue;
          await other.end("SIGTERM").exited;
          await other.start();
          await leaderOf(members);
        }
      }
      await until("all hosts are ready", async () => {
        const { nodes } = await wrong.operator().listNodes({});
        return nodes.length === hosts.length && nodes.every(({ ready }) => ready);
      });
      await grows(load);
      for (const member of members) (await lookedUp([member])).close();
      t.diagnostic(`led with a clock that is off by ${offsetSeconds} s`);
      await wrong.end("SIGTERM").exited;
      await wrong.start();
      await leaderOf(members);
    }
    await grows(load);
  };
}

/**
 * Reports whether the list names the clock that is off, or those of the others if the coordinator with that clock now
 * leads.
 */
async function saysClock(leader: Member, wrong: Member, offsetSeconds: number): Promise<boolean> {
  const { coordinators } = await leader.operator().listCoordinators({});
  const isAhead = offsetSeconds > 0 !== ((await wrong.leads()) === true);
  const text = `s ${isAhead ? "ahead of" : "behind"} the leader's`;
  return coordinators.some(({ message, ready }) => ready && message.includes(text));
}

function isChanged({ spec, state }: { readonly spec: unknown; readonly state: string }): boolean {
  return state === "running" && !JSON.stringify(spec).includes('"still"');
}

/** Waits until a few more rollouts have ended. */
async function grows(load: ApplyLoad): Promise<void> {
  const ended = load.ended + 2;
  await waitFor(() => load.ended >= ended || load.failures.length > 0, {
    ...{ what: "rollouts go on", limitMs: LIMIT_MS },
  });
  assert.deepEqual(load.failures, []);
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const settled = async (): Promise<boolean> => {
    try {
      return await holds();
    } catch {
      return false;
    }
  };
  await waitFor(settled, { what, limitMs: LIMIT_MS });
}
