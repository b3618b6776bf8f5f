import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { WhyResponse } from "@forage/proto/forage/operator/v1/operator";
import { ago, aNode, aPod, aResource } from "./builders.ts";
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
  fake.answers = {};
});

test("prints causes in order with remedies and the last events", async () => {
  fake.answers.why = () =>
    WhyResponse.fromPartial({
      summary: "pod web-1 is not ready: container main exited with code 3",
      causes: [
        {
          reason: "CrashLoopBackOff",
          message: "container main exited with code 3",
          details: ["no beans", "\u001b[31mbye"],
          advice: "read its logs: forage logs web-1 --previous",
        },
        { reason: "Starting", message: "the other one starts" },
      ],
      events: [
        {
          type: "Warning",
          reason: "ContainerFailed",
          kind: "pod",
          name: "web-1",
          message: "oh",
          count: 2,
          lastAt: ago(7_320),
        },
      ],
    });
  const { stdout, exitCode } = await forage("why pod/web-1 -n shop");
  assert.deepEqual(stdout.split("\n"), [
    "pod web-1 is not ready: container main exited with code 3",
    "",
    "1. CrashLoopBackOff: container main exited with code 3",
    "     no beans",
    "     \\x1b[31mbye",
    "   → read its logs: forage logs web-1 --previous",
    "",
    "2. Starting: the other one starts",
    "",
    "Events:",
    "  LAST  TYPE     REASON           ABOUT      COUNT  MESSAGE",
    "  2h2m  Warning  ContainerFailed  pod/web-1      2  oh",
    "",
  ]);
  assert.equal(exitCode, 0);
  assert.deepEqual(fake.requests("why"), [{ namespace: "shop", kind: "pod", name: "web-1" }]);
});

test("finds a bare name among pods, resources and nodes, and sends no namespace for a node", async () => {
  fake.answers.why = () => WhyResponse.fromPartial({ summary: "fine", healthy: true });
  fake.answers.listPods = ({ name }) => ({ kept: [], pods: name === "web-1" ? [aPod()] : [] });
  fake.answers.listResources = () => ({
    resources: [aResource({ kind: "service", name: "web" }), aResource({ name: "web" })],
  });
  fake.answers.listNodes = () => ({ nodes: [aNode({ name: "n1" })] });
  for (const name of ["web-1", "web", "n1", "node/n1", "svc/web"]) await forage(`why ${name}`);
  assert.deepEqual(
    fake.requests("why").map((request) => {
      const { namespace, kind, name } = request as { namespace: string; kind: string; name: string };
      return `${namespace} ${kind}/${name}`;
    }),
    ["default pod/web-1", "default container_service/web", " node/n1", " node/n1", "default service/web"],
  );
  const { stderr, exitCode } = await forage("why nothing");
  assert.match(stderr, /there is no pod, resource or node "nothing"/);
  assert.equal(exitCode, 1);
});
