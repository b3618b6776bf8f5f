import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Pod } from "@forage/proto/forage/operator/v1/operator";
import { CliError } from "../src/errors.ts";
import { aPod, aPodStatus } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
});

/**
 * Runs the command while the coordinator returns the sets of pods one after the other, and
 * interrupts it after the last.
 */
async function watch(line: string, lists: readonly (readonly Pod[])[]): Promise<Result> {
  const interrupt = new AbortController();
  let asked = 0;
  fake.answers.listPods = () => {
    const pods = lists[asked++] ?? lists.at(-1) ?? [];
    // The request after the last set shows that the set was printed.
    if (asked > lists.length) interrupt.abort(new CliError("INTERRUPTED", "interrupted"));
    return { pods: [...pods], kept: [] };
  };
  return runCommand(line.split(" "), { env: fake.env, signal: interrupt.signal });
}

const starting = aPod({ status: aPodStatus({ ready: false }) });

describe("get --watch", () => {
  test("prints all rows first, and then new or changed rows", async () => {
    const { exitCode, stdout, stderr } = await watch("get pods -w", [
      [starting],
      [aPod()],
      [aPod(), aPod({ name: "web-2" })],
      [aPod({ name: "web-2" })],
    ]);
    assert.equal(exitCode, 130);
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((text) => text.split(/ +/).slice(0, 3)),
      [
        ["POD", "READY", "STATUS"],
        ["web-1", "1/1", "NotReady"],
        ["web-1", "1/1", "Running"],
        ["web-2", "1/1", "Running"],
      ],
    );
    assert.match(stderr, /^default pod\/web-1 was deleted\n/);
  });

  test("prints one object on each line with -o json, and names with -o name", async () => {
    const lists = [[starting], [aPod()]];
    const { stdout } = await watch("get pods -w -o json", lists);
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((text) => JSON.parse(text).name),
      ["web-1", "web-1"],
    );
    assert.equal((await watch("get pods -w -o name", lists)).stdout, "pod/web-1\npod/web-1\n");
  });

  test("reports when a pod given by name is deleted, and fails for an unknown one", async () => {
    const gone = await watch("get pods web-1 -w", [[aPod()], [], []]);
    assert.equal(gone.exitCode, 130);
    assert.match(gone.stderr, /pod\/web-1 was deleted/);
    assert.match((await watch("get pods web-9 -w", [[], []])).stderr, /there is no pod "web-9"/);
  });
});
