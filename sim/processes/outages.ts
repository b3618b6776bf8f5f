import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { status } from "@grpc/grpc-js";
import { podUidOf } from "../../agent/src/pods/container-name.ts";
import { leaderOf, type Member } from "../../coordinator/test/support/coordinator-cluster.ts";
import { wrongClock } from "../../hack/lib/set-clock.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { type ApplyLoad, aVersion } from "./apply-load.ts";
import { decidedAt, lookedUp, readOn } from "./faults.ts";
import { LIMIT_MS, type Scene } from "./scene.ts";

/** Each of three coordinators comes to lead within a few elections. */
const ELECTIONS_MAX = 50;
const PAUSE_MS = 10_000;
const ALL = { namespace: "", labels: {}, workload: "", node: "", name: "" };

export async function pauseLeader(t: TestContext, { members }: Scene, load: ApplyLoad): Promise<void> {
  await grows(load);
  const leader = await leaderOf(members);
  const pausedAtMs = Date.now();
  const program = leader.end("SIGSTOP");
  const next = await leaderOf(members.filter((member) => member !== leader));
  const decidedMs = (await decidedAt(next, pausedAtMs)) - pausedAtMs;
  t.diagnostic(`another one decided ${decidedMs} ms after the pause had begun`);
  await until("the pause is over", () => Date.now() - pausedAtMs >= PAUSE_MS);
  const { starts } = leader;
  program.kill("SIGCONT");
  // It can't write any more, and steps down without an end of its process.
  await until("it follows", async () => (await leader.leads()) === false);
  assert.match(leader.log(), /this coordinator has lost the lead/);
  assert.equal(leader.starts, starts);
  await grows(load);
}

export async function loseMember(t: TestContext, { members, etcd }: Scene, load: ApplyLoad): Promise<void> {
  await grows(load);
  const leader = await leaderOf(members);
  const [first] = etcd;
  await first?.kill();
  await grows(load);
  t.diagnostic(`the leader ${(await leaderOf(members)) === leader ? "stayed" : "changed"}`);
  await first?.start();
}

export async function loseMembers(_: TestContext, scene: Scene, load: ApplyLoad): Promise<void> {
  const { members, etcd } = scene;
  await grows(load);
  const leader = await leaderOf(members);
  const lookups = await Promise.all(members.map((member) => lookedUp([member])));
  const before = lookups.map(({ updates }) => updates.length);
  for (const lookup of lookups) void readOn(lookup);
  const lost = etcd.slice(0, 2);
  await Promise.all(lost.map((member) => member.kill()));
  // The clients' calls end only with an answer of etcd.
  await withoutMajority(scene, leader).finally(() => Promise.all(lost.map((member) => member.start())));
  for (const [at, lookup] of lookups.entries()) {
    assert.deepEqual(lookup.updates.slice(before[at]), [], "look-ups go on without a message");
    lookup.close();
  }
  await grows(load);
}

async function withoutMajority({ members, hosts }: Scene, leader: Member): Promise<void> {
  const request = aVersion("app-c", 1);
  const refused = async (): Promise<boolean> => {
    const error: unknown = await leader.forage.applyResources(request).catch((it: unknown) => it);
    const { code, details = "" } = error as { readonly code?: number; readonly details?: string };
    return code === status.UNAVAILABLE && /store (is unreachable|did not answer in time)/.test(details);
  };
  await until("writes fail with the reason", refused);
  const ready = await fetch(`http://${leader.http}/readyz`);
  assert.match(await ready.text(), /etcd has not answered for \d+ s/);
  assert.ok((await leader.operator().listPods(ALL)).pods.length > 0, "reads go on");
  for (const member of members) (await lookedUp([member])).close();
  const [host] = hosts.filter(({ runtime }) => runtime.containers.some(isChanged));
  const container = host?.runtime.containers.findLast(isChanged);
  assert.ok(host && container, "there is a container that may end");
  host.runtime.exit(container.id, 1);
  const replaced = (): boolean =>
    host.runtime.containers.some(
      ({ id, labels, state }) =>
        state === "running" && id !== container.id && podUidOf(labels) === podUidOf(container.labels),
    );
  await until("the host has restarted its container", replaced);
}

export async function cutFromEtcd(t: TestContext, scene: Scene, load: ApplyLoad): Promise<void> {
  const { members } = scene;
  await grows(load);
  const leader = await leaderOf(members);
  const others = members.filter((member) => member !== leader);
  const cutAtMs = Date.now();
  for (const way of scene.waysToEtcd(leader)) way.cut();
  try {
    const next = await waitFor(() => newLeader(others), { what: "another one leads", limitMs: LIMIT_MS });
    t.diagnostic(`another one decided after ${(await decidedAt(next, cutAtMs)) - cutAtMs} ms`);
    (await lookedUp([leader])).close();
  } finally {
    for (const way of scene.waysToEtcd(leader)) way.mend();
  }
  await until("it follows", async () => (await leader.leads()) === false);
  await leaderOf(members);
  await grows(load);
}

/** Agents that have learnt the coordinators' own addresses may pass the ways by: one with connections is cut. */
export async function cutFromAgents(t: TestContext, scene: Scene, load: ApplyLoad): Promise<void> {
  const { members } = scene;
  const [member] = members.toSorted((a, b) => connectionsOf(scene, b) - connectionsOf(scene, a));
  assert.ok(member);
  t.diagnostic(`${connectionsOf(scene, member) / 2} connections are cut`);
  scene.wayOfAgents(member).cut();
  await until("all hosts are ready", async () => {
    const { nodes } = await member.operator().listNodes({});
    return nodes.length > 0 && nodes.every(({ ready }) => ready);
  });
  await grows(load);
  scene.wayOfAgents(member).mend();
}

function connectionsOf(scene: Scene, member: Member): number {
  return scene.wayOfAgents(member).connections;
}

/** Upgrades one after the other from the previous version. Look-ups on the others go on without a message. */
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
      // A coordinator that the machine gave no time for longer than its lease has stepped down.
      if (other.lives !== lives) continue;
      assert.deepEqual(lookup.updates.slice(before[at]), [], "look-ups on others go on without a message");
    }
    assert.deepEqual(scene.still(), still, "no container was touched");
  }
  await grows(load);
  t.diagnostic(`${load.acknowledged.length} rollouts, ${load.retries} retries`);
}

/** One coordinator after the other gets a wrong clock, and leads with it. */
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
      // The others are started again at once, so that agents and clients have both kinds of coordinators.
      const others = members.filter((member) => member !== wrong);
      for (let round = 0; (await wrong.leads()) !== true; round++) {
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

/** Returns whether the list names the clock that is off, or those of the others if the coordinator with that clock leads by now. */
async function saysClock(leader: Member, wrong: Member, offsetSeconds: number): Promise<boolean> {
  const { coordinators } = await leader.operator().listCoordinators({});
  const isAhead = offsetSeconds > 0 !== ((await wrong.leads()) === true);
  const text = `s ${isAhead ? "ahead of" : "behind"} the leader's`;
  return coordinators.some(({ message, ready }) => ready && message.includes(text));
}

function isChanged({ spec, state }: { readonly spec: unknown; readonly state: string }): boolean {
  return state === "running" && !JSON.stringify(spec).includes('"still"');
}

async function newLeader(members: readonly Member[]): Promise<Member | undefined> {
  const leads = await Promise.all(members.map((member) => member.leads()));
  return members[leads.indexOf(true)];
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
