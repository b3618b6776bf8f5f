import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { EXIT } from "../src/exit-code.ts";
import { aPod } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { HELLO } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

const reference = readFileSync(join(import.meta.dirname, "../../docs/reference/cli.md"), "utf8");

let fake: FakeCoordinator;
before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.answers = {};
  fake.calls.length = 0;
});

/** The exit codes of each command for each error of the coordinator. */
const refusals: readonly (readonly [status, string, Record<keyof typeof LINES, number>])[] = [
  [status.INVALID_ARGUMENT, "this coordinator does not know the fields #999: upgrade it", same(EXIT.failed)],
  [status.UNIMPLEMENTED, "The server does not implement the method", same(EXIT.failed)],
  [status.UNAUTHENTICATED, "the token has expired", same(EXIT.failed)],
  [status.PERMISSION_DENIED, "needs the role editor", same(EXIT.failed)],
  [status.NOT_FOUND, "there is nothing of that name", same(EXIT.failed)],
  [status.RESOURCE_EXHAUSTED, "too many plans", same(EXIT.failed)],
  [status.INTERNAL, "internal error", same(EXIT.failed)],
  [status.DEADLINE_EXCEEDED, "Deadline exceeded", same(EXIT.timedOut)],
];

function same(code: number) {
  const isFailure = code === EXIT.failed;
  const [plan, exec] = isFailure ? [EXIT.planFailed, EXIT.execFailed] : [code, code];
  const others = { logs: code, cp: code, drain: code, drainWait: code, token: code, revoke: code };
  return { get: code, apply: code, plan, exec, ...others };
}

describe("exit codes", () => {
  test("documents every exit code in the reference, and no others", () => {
    const table = reference.slice(reference.indexOf("## Exit codes"), reference.indexOf("## Output"));
    const documented = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
    assert.deepEqual(
      documented,
      [...new Set(Object.values(EXIT))].sort((a, b) => a - b),
    );
  });

  for (const [code, details, expected] of refusals) {
    test(`keeps the message of a call that fails with ${status[code]}, and returns one code for each command`, async () => {
      const refuse = () => {
        throw grpcError(code, details);
      };
      fake.answers = {
        ...{ listResources: refuse, applyResources: refuse, plan: refuse },
        ...{ drainNode: refuse, createJoinToken: refuse, revokeApiToken: refuse },
        listPods: () => ({ kept: [], pods: [aPod({ name: "web-1" })] }),
        exec: (call) => void call.emit("error", grpcError(code, details)),
        copy: (call) => void call.emit("error", grpcError(code, details)),
        logs: (call) => void call.emit("error", grpcError(code, details)),
      };
      const found: Record<string, number> = {};
      for (const [name, line] of Object.entries(LINES)) {
        const { exitCode, stderr } = await forage(line);
        found[name] = exitCode;
        assert.match(stderr, /^forage: /, name);
        if (code !== status.DEADLINE_EXCEEDED) assert.ok(stderr.includes(details), `${name}: ${stderr}`);
      }
      assert.deepEqual(found, expected);
    });
  }

  test("exits with 1 if a port-forward can't start, and with 4 if the coordinator does not answer in time", async () => {
    for (const [code, expected] of [
      [status.PERMISSION_DENIED, EXIT.failed],
      [status.DEADLINE_EXCEEDED, EXIT.timedOut],
    ] as const) {
      const refuse = () => {
        throw grpcError(code, "refused");
      };
      fake.answers = { listPods: refuse };
      assert.equal((await forage(["port-forward", "web-1", ":80"])).exitCode, expected);
    }
  });

  for (const [what, line, expected] of [
    ["a port-forward of something that is no port", ["port-forward", "web-1", "http"], EXIT.failed],
    ["a copy between two local paths", ["cp", "a", "b"], EXIT.failed],
    ["a copy from a file that is missing", ["cp", "/nonexistent", "web-1:/tmp"], EXIT.failed],
    ["an exec without a command", ["exec", "web-1"], EXIT.failed],
    ["logs of a node", ["logs", "node/n1"], EXIT.failed],
    ["a token with a life that is not a duration", ["token", "create", "--ttl", "soon"], EXIT.failed],
    ["a time limit that is not a duration", ["get", "--timeout", "soon"], EXIT.failed],
    ["an unknown command", ["no-such-command"], EXIT.failed],
    ["an unknown option", ["get", "--no-such"], EXIT.failed],
    ["a manifest that isn't valid", ["apply", "-f", "/nonexistent"], EXIT.failed],
    ["a plan of one", ["plan", "-f", "/nonexistent"], EXIT.planFailed],
    ["a configuration that can't be read", ["get", "--config", "/nonexistent"], EXIT.failed],
    ["help", ["--help"], EXIT.ok],
  ] as const) {
    test(`${what}: ${expected}`, async () => {
      assert.equal((await forage(line)).exitCode, expected);
      assert.deepEqual(fake.requests("applyResources"), []);
    });
  }
});

const LINES = {
  get: ["get"],
  apply: ["apply", "-f", "-"],
  plan: ["plan", "-f", "-"],
  exec: ["exec", "web-1", "--", "true"],
  logs: ["logs", "web-1"],
  cp: ["cp", "web-1:/tmp/a", "/tmp/forage-exit-codes"],
  drain: ["node", "drain", "n1"],
  drainWait: ["node", "drain", "n1", "--wait"],
  token: ["token", "create"],
  revoke: ["token", "revoke", "0123456789ab"],
} as const;

function forage(line: readonly string[]): Promise<Result> {
  return runCommand(line, { env: fake.env, stdin: HELLO });
}
