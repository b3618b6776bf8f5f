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

test("image prefetch --from --all names the node that sends the image, and leaves that one out", async () => {
  const { exitCode, stderr } = await prefetch("--from", "n1", "--all");
  assert.equal(exitCode, 0, stderr);
  const requests = fake.requests("prefetchImage") as { node: string; fromNode: string }[];
  assert.deepEqual(requests.map(({ node, fromNode }) => [node, fromNode]).sort(), [
    ["n2", "n1"],
    ["n3", "n1"],
  ]);
});

test("image prefetch --from takes no credentials of a registry", async () => {
  const { exitCode, stderr } = await prefetch("--from", "n1", "--node", "n2", "--pull-secret", "a");
  assert.deepEqual([exitCode, /which --from does not query: leave one out/.test(stderr)], [1, true], stderr);
});
