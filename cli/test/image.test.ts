import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { aNode } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
before(async () => {
  fake = await FakeCoordinator.start({
    listNodes: () => ({ nodes: ["n1", "n2", "n3"].map((name) => aNode({ name })) }),
    prefetchImage: (call) => call.end(),
  });
});
after(() => fake.close());

const prefetch = (...argv: readonly string[]) =>
  runCommand(["image", "prefetch", "web:1", "-n", "shop", ...argv], { env: fake.env });

test("names the node that sends the image with --from --all, and sends the image to all others", async () => {
  const { exitCode, stderr } = await prefetch("--from", "n1", "--all");
  assert.equal(exitCode, 0, stderr);
  const requests = fake.requests("prefetchImage") as { node: string; fromNode: string }[];
  assert.deepEqual(requests.map(({ node, fromNode }) => [node, fromNode]).sort(), [
    ["n2", "n1"],
    ["n3", "n1"],
  ]);
});

test("refuses credentials of a registry with --from", async () => {
  const { exitCode, stderr } = await prefetch("--from", "n1", "--node", "n2", "--pull-secret", "a");
  assert.deepEqual([exitCode, /which --from does not query: leave one out/.test(stderr)], [1, true], stderr);
});

test("prefetches with --all on the ready nodes, and refuses if none is ready", async (t) => {
  const { listNodes } = fake.answers;
  t.after(() => Object.assign(fake.answers, { listNodes }));
  const nodesAre = (...ready: readonly boolean[]): void => {
    fake.calls.length = 0;
    const nodes = ready.map((isReady, index) => aNode({ name: `n${index}`, ready: isReady }));
    fake.answers.listNodes = () => ({ nodes });
  };
  nodesAre(false, true);
  assert.equal((await prefetch("--all")).exitCode, 0);
  const requests = fake.requests("prefetchImage") as { node: string }[];
  assert.deepEqual(
    requests.map(({ node }) => node),
    ["n1"],
  );
  nodesAre(false, false);
  const { exitCode, stderr } = await prefetch("--all");
  assert.notEqual(exitCode, 0);
  assert.match(stderr, /no node is ready/);
  assert.deepEqual(fake.requests("prefetchImage"), []);
});
