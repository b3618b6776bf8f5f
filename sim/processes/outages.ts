import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { status } from "@grpc/grpc-js";
import { podUidOf } from "../../agent/src/pods/container-name.ts";
import { leaderOf, type Member } from "../../coordinator/test/support/coordinator-cluster.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { type ApplyLoad, aVersion } from "./apply-load.ts";
import { decidedAt, lookedUp, readOn } from "./faults.ts";
import { LIMIT_MS, type Scene } from "./scene.ts";

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
  program.kill("SIGCONT");
  // It can't write any more, so that it ends. The service manager starts it again.
  assert.equal(await program.exited, 1);
  assert.match(leader.log(), /this coordinator has lost the lead/);
  await leader.start();
  await until("it follows", async () => (await leader.leads()) === false);
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
  t.diagnostic(`${load.behind} answers of the one that was cut off were behind`);
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

export async function restartAll(t: TestContext, { members }: Scene, load: ApplyLoad): Promise<void> {
  for (const member of members) {
    await grows(load);
    const program = member.end("SIGTERM");
    assert.equal(await program.exited, 0);
    await member.start();
    await leaderOf(members);
  }
  await grows(load);
  assert.equal(load.behind, 0);
  t.diagnostic(`${load.acknowledged.length} rollouts, ${load.retries} retries`);
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
