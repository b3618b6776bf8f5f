import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { WatchDrainResponse } from "@forage/proto/forage/operator/v1/operator";
import { aNode } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = { drainNode: () => ({ node: aNode({ name: "n1", unschedulable: true }) }) };
});

test("starts a drain, and prints how to follow it", async () => {
  const { stdout, exitCode } = await forage(
    "node drain n1 --force --include-claims --uncordon-on-return --timeout 90s",
  );
  assert.equal(exitCode, 0);
  assert.match(stdout, /node\/n1 is being drained; to see how far it is: forage node drain n1 --wait/);
  assert.deepEqual(fake.requests("drainNode"), [
    { name: "n1", force: true, includeClaims: true, uncordonOnReturn: true, timeoutSeconds: 90 },
  ]);
});

test("prints changes and the remaining pods with --wait", async () => {
  const waiting = (...names: string[]) =>
    names.map((name) => ({ namespace: "shop", name, why: "waits for its turn" }));
  const staying = [{ namespace: "shop", name: "db-1", why: 'its claim "data" lies on n1' }];
  fake.answers.watchDrain = (call) => {
    call.write(drainOf("draining", { waiting: waiting("web-1", "web-2") }));
    call.write(drainOf("draining", { waiting: waiting("web-2") }));
    call.write(drainOf("drained", { staying }));
    call.end();
  };
  const { stdout, exitCode } = await forage("node drain n1 --wait");
  assert.equal(exitCode, 0);
  assert.deepEqual(stdout.trim().split("\n"), [
    "shop/web-1: waits for its turn",
    "shop/web-2: waits for its turn",
    "shop/web-1 has left",
    "shop/web-2 has left",
    "node/n1 is drained",
    'shop/db-1 stays: its claim "data" lies on n1',
  ]);
});

test("exits with the code of a time-out for a failed drain", async () => {
  fake.answers.watchDrain = (call) => {
    call.write(drainOf("failed", { message: "the deadline passed with 1 pods left: web-1" }));
    call.end();
  };
  const { stdout, exitCode } = await forage("node drain n1 -w");
  assert.match(stdout, /node\/n1 is not drained: the deadline passed/);
  assert.equal(exitCode, 4);
});

test("continues after the coordinator stopped with --wait", async () => {
  let streams = 0;
  fake.answers.watchDrain = (call) => {
    streams++;
    call.write(drainOf(streams === 1 ? "draining" : "drained", {}));
    call.end();
  };
  const { stdout, exitCode } = await forage("node drain n1 --wait");
  assert.deepEqual([streams, exitCode, stdout], [2, 0, "node/n1 is drained\n"]);
});

test("does not treat the unknown state of a drain as success", async () => {
  fake.answers.watchDrain = (call) => {
    call.write(drainOf("postponed", {}));
    call.end();
  };
  const { stdout, exitCode } = await forage("node drain n1 --wait");
  assert.match(stdout, /node\/n1 is not drained: the state of its drain is postponed/);
  assert.equal(exitCode, 1);
});

test("prints what was removed with the node", async () => {
  fake.answers.forgetNode = () => ({ pods: 2, claims: ["shop/data"] });
  const { stdout } = await forage("node remove n1 --force");
  assert.equal(stdout, "node/n1 is removed, with 2 pods\nthe data of claim shop/data is lost\n");
  assert.deepEqual(fake.requests("forgetNode"), [{ name: "n1", force: true }]);
});

test("accepts node forget, the former name of node remove", async () => {
  fake.answers.forgetNode = () => ({ pods: 0, claims: [] });
  const { stdout } = await forage("node forget n1");
  assert.equal(stdout, "node/n1 is removed, with 0 pods\n");
  const help = await forage("help node forget");
  assert.match(
    help.stdout,
    /^Usage: forage node remove \[options\] NODE$[\s\S]*^Former name: forage node forget\.$/m,
  );
});

test("prints each move of a rebalance, and the plan with --dry-run", async () => {
  const move = { namespace: "shop", pod: "web-1", from: "n1", to: "n2", state: "planned", message: "" };
  fake.answers.rebalance = (call) => {
    call.write({ summary: "1 move to spread replicas evenly", moves: [move], changed: undefined });
    call.write({ summary: "", moves: [], changed: { ...move, state: "moving" } });
    call.write({ summary: "", moves: [], changed: { ...move, state: "failed", message: "it stays" } });
    call.end();
  };
  const { stdout, stderr, exitCode } = await forage("rebalance --max-moves 5 --at-once 2");
  assert.equal(stdout, "shop/web-1 moving from n1\nshop/web-1 failed from n1: it stays\n");
  assert.equal(stderr, "1 move to spread replicas evenly\n");
  assert.equal(exitCode, 1);
  assert.deepEqual(fake.requests("rebalance"), [{ goal: "", maxMoves: 5, maxInFlight: 2, dryRun: false }]);
  fake.answers.rebalance = (call) => {
    call.write({ summary: "1 move to empty 1 node", moves: [move], changed: undefined });
    call.end();
  };
  const plan = await forage("rebalance --dry-run --goal pack");
  assert.match(plan.stdout, /POD +FROM +TO +STATE\nshop\/web-1 +n1 +n2 +planned/);
  assert.match((await forage("rebalance --at-once many")).stderr, /--at-once: "many" is not a count/);
});

test("shows since when and why nodes are not ready, and whether they are drained", async () => {
  const since = { seconds: BigInt(Math.floor(Date.now() / 1000) - 65), nanos: 0 };
  fake.answers.listNodes = () => ({
    nodes: [
      aNode({
        name: "n1",
        ready: false,
        unreachable: true,
        message: "it sends no heartbeats",
        notReadySince: since,
      }),
      aNode({ name: "n2", ready: false, message: "RuntimeReady: gone", unschedulable: true }),
      aNode({
        name: "n3",
        unschedulable: true,
        drain: WatchDrainResponse.fromPartial({ drain: { state: "drained" } }).drain,
      }),
    ],
  });
  const { stdout } = await forage("node ls");
  assert.match(stdout, /n1 +Unreachable .*it sends no heartbeats \(for 1m\ds\)/);
  assert.match(stdout, /n2 +NotReady,Unschedulable .*RuntimeReady: gone/);
  assert.match(stdout, /n3 +Ready,Drained/);
});

function drainOf(
  state: string,
  {
    message = "",
    ...rest
  }: { readonly message?: string } & Parameters<typeof WatchDrainResponse.fromPartial>[0],
): WatchDrainResponse {
  return WatchDrainResponse.fromPartial({ drain: { state, message }, ...rest });
}
