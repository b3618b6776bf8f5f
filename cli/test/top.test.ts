import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { aNode, aPod } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });
const MEBIBYTE = 1024n * 1024n;
const usage = (cpuMilli: bigint | undefined, mebibytes: bigint) => ({
  usage: { cpuMilli, memoryBytes: mebibytes * MEBIBYTE },
});

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {
    listNodes: () => ({
      nodes: [
        aNode({ name: "n1", ...usage(380n, 3_072n), labels: { zone: "a" } }),
        aNode({ name: "n2", ...usage(1_900n, 1_536n), labels: { zone: "b" } }),
        aNode({ name: "n3", ready: false }),
      ],
    }),
    listPods: () => ({
      pods: [
        aPod({ name: "web-1", node: "n1", ...usage(20n, 64n) }),
        aPod({ name: "web-2", node: "n2", ...usage(undefined, 128n) }),
        aPod({ name: "web-3", node: "n1", ...usage(1_000n, 32n) }),
        aPod({ name: "new", node: "" }),
      ],
      kept: [],
    }),
  };
});

test("lists the use of nodes, the busiest first", async () => {
  const { stdout, exitCode } = await forage("top nodes");
  assert.deepEqual(stdout.split("\n"), [
    "NODE    CPU  CPU%  MEMORY  MEMORY%  PODS",
    "n2    1900m   50%   1.5Gi      10%     3",
    "n1     380m   10%     3Gi      20%     3",
    "n3        -     -       -        -     3",
    "",
  ]);
  assert.equal(exitCode, 0);
});

test("lists the use of a namespace's pods in the chosen order, those without values last", async () => {
  assert.deepEqual((await forage("top pods -n shop --node n1 -l app=web")).stdout.split("\n"), [
    "POD    CPU  MEMORY  NODE",
    "web-3    1    32Mi  n1",
    "web-1  20m    64Mi  n1",
    "new      -       -  -",
    "web-2    -   128Mi  n2",
    "",
  ]);
  assert.deepEqual(fake.requests("listPods"), [
    { namespace: "shop", labels: { app: "web" }, node: "n1", workload: "", name: "" },
  ]);
  const namesBy = async (order: string) =>
    (await forage(`top pods --sort ${order} -o name`)).stdout.trim().split("\n");
  assert.deepEqual(await namesBy("memory"), ["pod/web-2", "pod/web-1", "pod/web-3", "pod/new"]);
  assert.deepEqual(await namesBy("name"), ["pod/new", "pod/web-1", "pod/web-2", "pod/web-3"]);
});

test("selects by name and label, in all namespaces, and prints documents", async () => {
  const one = JSON.parse((await forage("top node n1 -o json")).stdout);
  assert.deepEqual(one, { name: "n1", usage: { cpuMilli: "380", memoryBytes: `${3_072n * MEBIBYTE}` } });
  assert.equal((await forage("top nodes -l zone!=a -o name")).stdout, "node/n2\nnode/n3\n");
  assert.match((await forage("top pods -A")).stdout, /^NAMESPACE +POD /);
  const pods = JSON.parse((await forage("top pods web-2 -o json")).stdout);
  assert.deepEqual(pods.usage, { memoryBytes: `${128n * MEBIBYTE}` });
});

test("refuses unknown names and contradictory flags", async () => {
  for (const [line, message] of [
    ["top", /WHAT/],
    ["top services", /WHAT is one of nodes, pods/],
    ["top nodes -A", /--all-namespaces and --node are for pods/],
    ["top pods -A -n shop", /contradict/],
    ["top pods --sort size", /--sort is one of cpu, memory, name/],
    ["top nodes n9", /n9/],
    ["top pods web-9", /web-9/],
  ] as const) {
    const result = await forage(line);
    assert.match(result.stderr, message, line);
    assert.equal(result.exitCode, 1, line);
  }
});
