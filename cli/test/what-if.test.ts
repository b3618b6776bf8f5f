import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { CapacityResponse, WhatIfResponse } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
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

test("sends each flag as a supposition, and prints the outcome of each workload", async () => {
  fake.answers.whatIf = () =>
    WhatIfResponse.fromPartial({
      workloads: [
        {
          ...{ namespace: "shop", kind: "container_service", name: "web" },
          ...{ readyBefore: 6, readyLowest: 4, readyAfter: 5, minimum: 5 },
          left: [{ node: "n2", pods: 2 }],
          came: [{ node: "n1", pods: 1 }],
          waiting: [{ pods: 1, why: "0/2 nodes: 2 insufficient cpu" }],
        },
      ],
      resources: [
        {
          ...{ resource: "cpu", requestedBefore: "3", allocatableBefore: "6", percentBefore: 50 },
          ...{ requestedAfter: "2500m", allocatableAfter: "4", percentAfter: 62.5 },
        },
        {
          ...{ resource: "memory", requestedBefore: "1073741824", allocatableBefore: "2147483648" },
          ...{ requestedAfter: "0", allocatableAfter: "0" },
        },
      ],
      notes: ["a note"],
    });
  const flags = "--lose n2 --lose zone=a --drain n3 --add 2 --like n1 --scale web=7 --scale pay/api=3";
  const { stdout, exitCode } = await forage(`whatif ${flags} -n shop`);
  assert.deepEqual(fake.requests("whatIf"), [
    {
      suppositions: [
        { $case: "addNodes", value: { count: 2, like: "n1" } },
        { $case: "scale", value: { namespace: "shop", name: "web", replicas: 7 } },
        { $case: "scale", value: { namespace: "pay", name: "api", replicas: 3 } },
        { $case: "drainNode", value: "n3" },
        { $case: "loseNode", value: "n2" },
        { $case: "loseNodes", value: { key: "zone", value: "a" } },
      ].map((supposition) => ({ supposition })),
    },
  ]);
  assert.equal(
    stdout,
    `shop/web  ready: 6 now, 4 of at least 5 at worst, 5 in the end
    leaves n2 (2)
    comes to n1 (1)
    1 waits: 0/2 nodes: 2 insufficient cpu

RESOURCE  NOW            THEN
cpu       3 of 6 (50 %)  2500m of 4 (63 %)
memory    1Gi of 2Gi     0 of 0

a note

1 pod would wait for a node, and 1 service would fall below its minimum
`,
  );
  assert.equal(exitCode, 1);
});

test("states in the last line what would be worse than now", async () => {
  const web = { namespace: "shop", kind: "container_service", name: "web" };
  const waiting = [{ pods: 5, why: "full", already: 2 }];
  const lastLine = async (outcome: Parameters<typeof WhatIfResponse.fromPartial>[0]): Promise<string> => {
    fake.answers.whatIf = () => WhatIfResponse.fromPartial(outcome);
    const { stdout, exitCode } = await forage("whatif --drain n1");
    assert.equal(exitCode, 1);
    return stdout.trimEnd().split("\n").at(-1) ?? "";
  };
  assert.equal(await lastLine({ workloads: [{ ...web, waiting }] }), "3 pods would wait for a node");
  const short = { ...web, readyBefore: 3, readyLowest: 1, minimum: 2 };
  assert.equal(
    await lastLine({ workloads: [short, { ...short, name: "api" }] }),
    "2 services would fall below their minimum",
  );
  const shortAlready = { ...short, readyBefore: 1 };
  assert.equal(
    await lastLine({ workloads: [shortAlready], notes: ["most nodes would be lost at once"] }),
    "lost pods would not be replaced: the note says why",
  );
});

test("prints the worst loss of any one node in full, others in short, and names estimated ones", async () => {
  const web = { namespace: "shop", kind: "container_service", name: "web" };
  const waiting = [{ ...web, pods: 2, why: "full" }];
  const short = [{ ...web, name: "api", readyBefore: 2, readyLowest: 0, minimum: 1 }];
  const outcome = {
    ...{ ...web, readyBefore: 6, readyLowest: 4, readyAfter: 4, minimum: 3 },
    left: [{ node: "n1", pods: 2 }],
    waiting: [{ pods: 2, why: "full" }],
  };
  const amounts = {
    requestedBefore: "3",
    allocatableBefore: "6",
    requestedAfter: "2",
    allocatableAfter: "4",
  };
  const resources = [{ resource: "cpu", ...amounts, percentBefore: 50, percentAfter: 50 }];
  fake.answers.whatIf = () =>
    WhatIfResponse.fromPartial({
      nodesTried: 9,
      losses: [
        { node: "n1", pods: 4, waiting, short, workloads: [outcome], resources },
        { node: "n2", pods: 1, waiting, short, estimated: true },
      ],
      estimated: ["n2"],
    });
  const { stdout, exitCode } = await forage("whatif --lose any-1");
  assert.equal(
    stdout,
    `without n1, which has 4 pods:
    shop/web  ready: 6 now, 4 of at least 3 at worst, 4 in the end
        leaves n1 (2)
        2 wait: full
    RESOURCE  NOW            THEN
    cpu       3 of 6 (50 %)  2 of 4 (50 %)

without n2, which has 1 pod (estimated):
    2 of shop/web wait: full
    shop/api has 0 of at least 1 ready at worst, 2 now

exact for 8 of 9 nodes; only estimated, without preemption: n2 (--lose NODE tries one out)

the loss of 2 of 9 nodes would leave pods without a place or services below their minimum
`,
  );
  assert.equal(exitCode, 1);
  fake.answers.whatIf = () => WhatIfResponse.fromPartial({ nodesTried: 3, safe: true });
  const safe = await forage("whatif --lose any-1");
  assert.equal(
    safe.stdout,
    "the loss of any one of 3 nodes leaves every pod a place, and no service falls below its minimum\n",
  );
  assert.equal(safe.exitCode, 0);
});

test("prints documents, exits with 255 for failures, and refuses invalid flags", async () => {
  fake.answers.whatIf = () => WhatIfResponse.fromPartial({ safe: true });
  const json = await forage("whatif --drain n1 -o json");
  assert.equal((JSON.parse(json.stdout) as { safe: boolean }).safe, true);
  assert.equal(json.exitCode, 0);
  fake.answers.whatIf = () => {
    throw grpcError(status.NOT_FOUND, 'suppositions[0].drain_node: no node "n9"');
  };
  const failed = await forage("whatif --drain n9");
  assert.equal(failed.exitCode, 255);
  assert.match(failed.stderr, /no node "n9"/);
  for (const [flags, message] of [
    ["", /the change to try is missing/],
    ["--add 3", /--add and --like go together/],
    ["--add some --like n1", /--add: "some" is not a number/],
    ["--lose =a", /--lose: "=a" is not a label/],
    ["--scale web", /--scale: "web" is not understood/],
  ] as const) {
    const { stderr, exitCode } = await forage(`whatif ${flags}`.trim());
    assert.match(stderr, message);
    assert.equal(exitCode, 255);
  }
});

test("prints how many more pods fit, where, and which resource runs out first", async () => {
  fake.answers.capacity = () =>
    CapacityResponse.fromPartial({
      pods: 3n,
      podsIfPooled: 4n,
      nodes: [
        { node: "n1", pods: 2 },
        { node: "n2", pods: 1 },
      ],
      runsOutFirst: "cpu",
      why: "0/2 nodes: 2 insufficient cpu",
      requests: { cpu: "1500m", memory: "268435456", pods: "1" },
    });
  const { stdout, exitCode } = await forage(
    "capacity --cpu 1500m --memory 256Mi --request vendor.example/gpu=1",
  );
  assert.deepEqual(fake.requests("capacity"), [
    {
      shape: {
        $case: "requests",
        value: { amounts: { cpu: "1500m", memory: "256Mi", "vendor.example/gpu": "1" } },
      },
    },
  ]);
  assert.equal(
    stdout,
    `3 more pods of 1500m cpu, 256Mi memory
    on n1 (2), n2 (1)
    4 if the same room were on one node: the rest is lost to fragmentation
    cpu runs out first
    the next one: 0/2 nodes: 2 insufficient cpu
`,
  );
  assert.equal(exitCode, 0);
});

test("computes the capacity for pods like a workload's, and refuses invalid flags", async () => {
  fake.answers.capacity = () => CapacityResponse.fromPartial({ pods: 100_000n, more: true });
  const { stdout } = await forage("capacity --like job/import -n shop");
  assert.deepEqual(fake.requests("capacity"), [
    { shape: { $case: "like", value: { namespace: "shop", kind: "job", name: "import" } } },
  ]);
  assert.equal(stdout, "at least 100000 more pods\n");
  for (const [flags, message] of [
    ["capacity", /give either --like, or at least one of/],
    ["capacity --like web --cpu 1", /give either --like, or at least one of/],
    ["capacity --request gpu", /--request: "gpu" is not understood/],
  ] as const) {
    const { stderr, exitCode } = await forage(flags);
    assert.match(stderr, message);
    assert.equal(exitCode, 1);
  }
});
