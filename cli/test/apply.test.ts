import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { CliError } from "../src/errors.ts";
import { aRollout } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { anEvent, HELLO, rollout } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string, stdin?: string, signal?: AbortSignal): Promise<Result> =>
  runCommand(line.split(" "), {
    env: fake.env,
    ...(stdin !== undefined && { stdin }),
    ...(signal && { signal }),
  });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {};
});

const { PENDING, SUCCEEDED, FAILED } = RolloutStatus;

describe("apply", () => {
  test("sends the bundle, follows the rollout and prints a summary", async () => {
    fake.answers = rollout(
      [anEvent(PENDING), anEvent(SUCCEEDED, "2/2 ready")],
      aRollout([{}, { kind: "service" }]),
    );
    const { exitCode, stdout, stderr } = await forage("apply -f -", HELLO);
    assert.equal(exitCode, 0);
    assert.equal(stderr, "container_service/web: pending\ncontainer_service/web: done: 2/2 ready\n");
    assert.match(stdout, /^rollout r-1 done: 2 resources in 0\.\ds\n$/);
    const [request] = fake.requests("applyResources") as {
      applyId: string;
      namespace: string;
      resources: unknown[];
    }[];
    assert.deepEqual(
      [request?.applyId, request?.namespace, request?.resources.length],
      ["random-id", "shop", 2],
    );
    assert.deepEqual(fake.requests("watchRollout"), [{ rolloutId: "r-1" }]);
  });

  test("exits with the code of the rollout's result", async () => {
    const cases: [string, RolloutStatus, string, number, RegExp][] = [
      [
        "crash",
        FAILED,
        "exited with code 3; last lines: boom",
        1,
        /^rollout r-1 failed: container_service\/web/,
      ],
      ["unschedulable", FAILED, "no node fits: 0/2 nodes: 2 insufficient cpu", 2, /^rollout r-1 not placed/],
      ["crash", RolloutStatus.ROLLED_BACK, "2 crashes", 3, /^rollout r-1 rolled back/],
    ];
    for (const [reason, value, message, code, stdoutText] of cases) {
      fake.answers = rollout([anEvent(value, message)], aRollout([{ status: value, reason, message }]));
      const { exitCode, stdout, stderr } = await forage("apply -f -", HELLO);
      assert.equal(exitCode, code);
      assert.match(stdout, stdoutText);
      assert.ok(stderr.includes(message));
    }
  });

  test("prints only the final state on standard output with -o json", async () => {
    fake.answers = rollout([anEvent(SUCCEEDED)], aRollout([{}]));
    const [document] = JSON.parse((await forage("apply -f - -o json", HELLO)).stdout);
    assert.deepEqual(
      [document.rolloutId, document.finished, document.resources[0].status],
      ["r-1", true, "ROLLOUT_STATUS_SUCCEEDED"],
    );
  });

  test("prints the rollout's id with -o name", async () => {
    fake.answers = rollout([anEvent(SUCCEEDED)], aRollout([{}]));
    assert.equal((await forage("apply -f - -o name", HELLO)).stdout, "r-1\n");
  });

  test("prints the id and follows nothing with --detach", async () => {
    fake.answers = rollout([], aRollout([{}]));
    assert.deepEqual(await forage("apply -f - --detach", HELLO), {
      exitCode: 0,
      stdout: "r-1\n",
      stderr: "",
    });
    assert.deepEqual(fake.requests("watchRollout"), []);
    const { stdout } = await forage("apply -f - --detach -o json", HELLO);
    assert.deepEqual(JSON.parse(stdout), [{ rolloutId: "r-1", namespace: "shop" }]);
  });

  test("reads files, directories and standard input together", async () => {
    fake.answers = rollout([], aRollout([{}]));
    writeFileSync(join(fake.dir, "a.yaml"), "namespace: shop\nresources: [{name: a, service: {}}]");
    writeFileSync(
      join(fake.dir, "b.json"),
      '{"namespace": "shop", "resources": [{"name": "b", "service": {}}]}',
    );
    await forage(
      `apply --detach -f ${fake.dir} -f -`,
      "namespace: shop\nresources: [{name: c, service: {}}]",
    );
    const [request] = fake.requests("applyResources") as { resources: { name: string }[] }[];
    assert.deepEqual(
      request?.resources.map(({ name }) => name),
      ["a", "b", "c"],
    );
  });

  test("sends nothing if anything is invalid", async () => {
    fake.answers = rollout([], aRollout([{}]));
    for (const [line, stdin, message] of [
      [
        "apply -f -",
        "name: a\nservice: {prots: []}",
        /^forage: the manifest is not valid; nothing was sent:\n {2}standard input:2:11: service\.prots: unknown field "prots" \(did you mean "ports"\?\)\n$/,
      ],
      ["apply -f /nonexistent.yaml", "", /\/nonexistent\.yaml does not exist/],
      ["apply", "", /no manifest: name one with -f/],
      ["apply -f - -f -", HELLO, /standard input can be read only once/],
      ["apply -f - -n other", HELLO, /standard input:1:12: namespace: "shop" contradicts -n other/],
      ["apply -f - --timeout soon", HELLO, /--timeout: "soon" is not a duration/],
      ["apply -f -", "\u0000\ufffd: {", /nothing was sent/],
    ] as const) {
      const { exitCode, stderr, stdout } = await forage(line, stdin);
      assert.deepEqual([exitCode, stdout], [1, ""], line);
      assert.match(stderr, message);
    }
    assert.deepEqual(fake.calls, []);
  });

  test("shows a violation of the coordinator at its line of the manifest", async () => {
    fake.answers.applyResources = () => {
      throw grpcError(status.INVALID_ARGUMENT, "2 fields are wrong", [
        { field: "resources[0].container_service.container.image", description: "is no image" },
        { field: "elsewhere", description: "is odd" },
        { field: "resources[9].name", description: "is beyond" },
      ]);
    };
    const { exitCode, stderr } = await forage("apply -f -", HELLO);
    assert.equal(exitCode, 1);
    assert.deepEqual(stderr.split("\n"), [
      "forage: the coordinator refuses the manifest; nothing was changed:",
      "  standard input:5:80: resources[0].container_service.container.image: is no image",
      "  standard input:1:1: elsewhere: is odd",
      "  resources[9].name: is beyond",
      "",
    ]);
  });

  test("names the bundles that were started before an error", async () => {
    const two =
      "namespace: a\nresources: [{name: a, service: {}}]\n---\nnamespace: b\nresources: [{name: b, service: {}}]\n";
    fake.answers = rollout([anEvent(SUCCEEDED)], aRollout([{}]));
    assert.match((await forage("apply -f -", two)).stdout, /^rollout r-1 done.*\nrollout r-1 done.*\n$/);
    fake.answers.applyResources = ({ namespace }) => {
      if (namespace === "b") throw grpcError(status.PERMISSION_DENIED, "not yours");
      return { rolloutId: "r-1" };
    };
    const { exitCode, stderr } = await forage("apply -f -", two);
    assert.equal(exitCode, 1);
    assert.equal(
      stderr,
      "rollout r-1 was started before the error: forage rollout status r-1\nforage: not allowed: not yours\n",
    );
  });

  test("stops watching at Ctrl-C, and reports that the rollout continues", async () => {
    const interrupt = new AbortController();
    fake.answers = {
      ...rollout([], aRollout([{}])),
      watchRollout: (call) => {
        call.write(anEvent(PENDING));
        interrupt.abort(new CliError("INTERRUPTED", "interrupted"));
      },
    };
    const { exitCode, stderr } = await forage("apply -f -", HELLO, interrupt.signal);
    assert.equal(exitCode, 130);
    assert.match(
      stderr,
      /not waiting any longer; the rollout continues\. Follow it with\n {2}forage rollout status r-1 --watch\n$/,
    );
    assert.deepEqual(fake.requests("delete"), []);
  });

  test("stops watching after --timeout with its own exit code", async () => {
    fake.answers = {
      ...rollout([], aRollout([{}])),
      watchRollout: (call) => void call.write(anEvent(PENDING)),
    };
    const { exitCode, stderr } = await forage("apply -f - --timeout 300ms", HELLO);
    assert.equal(exitCode, 4);
    assert.match(stderr, /the time is over; the rollout continues/);
  });

  test("continues to follow when the coordinator is killed and restarted", async () => {
    let watches = 0;
    fake.answers = {
      ...rollout([], aRollout([{}])),
      watchRollout: (call) => {
        watches++;
        call.write(anEvent(watches === 1 ? PENDING : SUCCEEDED));
        if (watches === 2) call.end();
        else setImmediate(() => fake.cut());
      },
    };
    const running = runCommand(["apply", "-f", "-"], {
      env: fake.env,
      stdin: HELLO,
      onError: (text) => {
        if (text.includes("trying again")) void fake.listen();
      },
    });
    const { exitCode, stdout, stderr } = await running;
    assert.deepEqual([exitCode, watches], [0, 2]);
    assert.match(stdout, /^rollout r-1 done/);
    assert.equal(
      stderr,
      "container_service/web: pending\nthe coordinator doesn't answer; trying again, the rollout continues\n" +
        "the coordinator answers again\ncontainer_service/web: done\n",
    );
  });

  test("sends the apply again with the same apply id after a lost answer", async () => {
    let sent = 0;
    fake.answers = {
      ...rollout([anEvent(SUCCEEDED)], aRollout([{}])),
      applyResources: () => {
        sent++;
        if (sent === 1) throw grpcError(status.UNAVAILABLE, "Connection dropped");
        return { rolloutId: "r-1" };
      },
    };
    assert.equal((await forage("apply -f -", HELLO)).exitCode, 0);
    const ids = (fake.requests("applyResources") as { applyId: string }[]).map(({ applyId }) => applyId);
    assert.deepEqual(ids, ["random-id", "random-id"]);
  });
});
