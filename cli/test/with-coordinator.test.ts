import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { RealCoordinator } from "./real-coordinator.ts";
import { HELLO } from "./rollout.ts";
import { type Result, type RunOptions, runCommand } from "./run-command.ts";

/**
 * The tests use the real coordinator, because the command depends on the wording of some answers
 * that the fake only imitates.
 */
const coordinator = new RealCoordinator();
const forage = (line: string, options: RunOptions = {}): Promise<Result> =>
  runCommand(line.split(" "), { ...options, env: { ...coordinator.env, ...options.env } });

/** Lists until the output matches, because a status is stored slightly after the event. */
async function listed(line: string, pattern: RegExp): Promise<void> {
  const endMs = performance.now() + 30_000;
  for (;;) {
    const { stdout } = await forage(line);
    if (pattern.test(stdout)) return;
    if (performance.now() > endMs) assert.match(stdout, pattern);
    await delay(25);
  }
}

before(() => coordinator.start());
after(() => coordinator.close());

describe("with a real coordinator", { timeout: 120_000 }, () => {
  test("explains without nodes why a pod is not placed, equally in apply, get, describe and rollout status", async () => {
    const { exitCode, stdout, stderr } = await forage("apply -f -", { stdin: HELLO });
    assert.equal(exitCode, 2, stderr);
    assert.match(
      stdout,
      /^rollout r-\w+ not placed: container_service\/web, service\/web \(2 of 2 resources\)/,
    );
    assert.match(stderr, /container_service\/web: failed: 0\/2 ready; no node fits/);
    assert.match(
      (await forage("get -n shop")).stdout,
      /container_service {2}web {3}0\/2 .*\nservice {12}web {3}0 /,
    );
    assert.match((await forage("get pods -n shop")).stdout, /\nweb-\w+-\w+ {2}0\/0 {4}Unplaced /);
    const [pod = ""] = (await forage("get pods -n shop -o name")).stdout.split("\n");
    const own = await forage(`get ${pod} -n shop -o yaml`);
    assert.match(own.stdout, /\ntemplate:\n {2}container:\n(.*\n)*? {4}image: registry\.example\/web:1\n/);
    assert.doesNotMatch((await forage("get pods -n shop -o yaml")).stdout, /template:/);
    assert.match((await forage("describe cs/web -n shop")).stdout, /rollout r-\w+ not placed/);
    assert.equal((await forage("rollout status cs/web -n shop")).exitCode, 2);
  });

  test("starts, lists without its token, and stops a workspace", async () => {
    const start = "workspace start w-1 --image registry.example/workspace:1 --workspace my-work";
    const { stdout, stderr } = await forage(start);
    assert.equal(stdout, "https://w-1.ws.localhost\n", stderr);
    assert.equal((await forage(start)).stdout, stdout);
    await listed("workspace ls", /\nw-1 +my-work +forage +Pending +default .*waits for a node/);
    assert.doesNotMatch((await forage("workspace ls -o json")).stdout, /"ownerToken": "./);
    assert.match((await forage("workspace ls --owner nobody")).stderr, /no workspaces/);
    assert.match((await forage("workspace snapshot my-work")).stderr, /workspace w-1 is not running/);
    assert.equal((await forage("workspace stop my-work")).stdout, "workspace w-1 is being stopped\n");
    assert.equal((await forage("workspace stop w-1 --immediately")).exitCode, 0);
    const invalid = await forage("workspace start W_1 --image Nope");
    assert.match(invalid.stderr, /id: .*spec.workspace_image: /s);
  });

  test("shows a violation at its position", async () => {
    const { exitCode, stderr } = await forage("apply -f -", {
      stdin: HELLO.replace("registry.example/web:1", "no image"),
    });
    assert.equal(exitCode, 1);
    assert.match(stderr, /\n {2}standard input:5:80: resources\[0\]\.container_service\.container\.image: /);
  });

  test("continues to follow a rollout when the coordinator is killed and restarted", async () => {
    let restarted: Promise<void> | undefined;
    const running = forage("apply -f -", {
      stdin: HELLO.replace("shop", "killed"),
      onError: (text) => {
        if (text.includes("pending")) restarted ??= coordinator.kill().then(() => coordinator.start());
      },
    });
    const { exitCode, stderr } = await running;
    await restarted;
    assert.match(stderr, /the coordinator doesn't answer; trying again.*\nthe coordinator answers again\n/);
    assert.equal(exitCode, 2, stderr);
  });

  test("lets a viewer of one namespace read only this namespace, and change nothing", async () => {
    const { stdout } = await forage("token create --role viewer -n shop -o json");
    const file = join(coordinator.dir, "viewer-token");
    writeFileSync(file, JSON.parse(stdout).token, { mode: 0o600 });
    const env = { FORAGE_TOKEN_FILE: file };
    assert.equal((await forage("get -n shop", { env })).exitCode, 0);
    for (const line of ["get -n other", "get -A", "node ls", "delete --all --yes -n shop", "token create"]) {
      const { exitCode, stderr } = await forage(line, { env });
      assert.equal(exitCode, 1, line);
      assert.match(stderr, /^forage: not allowed: /, line);
    }
    const wrong = `flt_${"0".repeat(12)}_${"A".repeat(43)}`;
    const { stderr } = await forage("get", { env: { FORAGE_TOKEN: wrong } });
    assert.match(stderr, /does not accept the token from FORAGE_TOKEN/);
    assert.ok(!stderr.includes(wrong));
    assert.match((await forage("token create --ttl 10m")).stdout, /^FLT1\.\S+\n$/);
  });

  test("deletes the resources of a manifest twice", async () => {
    assert.equal((await forage("delete -f - --wait --timeout 20s", { stdin: HELLO })).exitCode, 0);
    assert.equal((await forage("get -n shop -o json")).stdout, "[]\n");
    assert.match((await forage("delete -f -", { stdin: HELLO })).stderr, /there was nothing left to delete/);
    assert.match(
      (await forage("delete cs/web -n shop")).stderr,
      /namespace "shop" has no container_service\/web; nothing was deleted/,
    );
  });
});
