import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ApiToken } from "@forage/proto/forage/operator/v1/operator";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { runCommand } from "./run-command.ts";

/** The present time, because certificates must be valid. */
const NOW_MS = Math.floor(Date.now() / 1000) * 1000;
const at = (agoMs: number) => ({ seconds: BigInt((NOW_MS - agoMs) / 1000), nanos: 0 });
const HOUR_MS = 3_600_000;
let fake: FakeCoordinator;

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());

test("lists the namespaces, expiry and last use of tokens", async () => {
  const tokens = [
    { id: "a", role: "viewer", createdAt: at(2 * HOUR_MS), expiresAt: at(-HOUR_MS), lastUsedAt: at(60_000) },
    { id: "b", role: "editor", namespaces: ["shop", "lab"], createdAt: at(HOUR_MS) },
    {
      id: "c",
      role: "admin",
      createdAt: at(HOUR_MS),
      expiresAt: at(1_000),
      expired: true,
      description: "ci",
    },
  ];
  fake.answers.listApiTokens = () => ({ tokens: tokens.map((it) => ApiToken.fromPartial(it)) });
  const { stdout, stderr, exitCode } = await runCommand(["token", "ls"], {
    env: fake.env,
    nowMs: () => NOW_MS,
  });
  assert.deepEqual(
    stdout.split("\n").map((line) => line.trim().replaceAll(/ {2,}/g, " | ")),
    [
      "ID | ROLE | NAMESPACES | AGE | EXPIRES | LAST USED | DESCRIPTION",
      "a | viewer | all | 2h | 1h | 1m ago | -",
      "b | editor | shop,lab | 1h | never | never | -",
      "c | admin | all | 1h | expired | never | ci",
      "",
    ],
  );
  assert.deepEqual([stderr, exitCode], ["", 0]);
});

test("revokes a token by its id, which is required", async () => {
  fake.answers.revokeApiToken = () => ({});
  const { stdout } = await runCommand(["token", "revoke", "a"], { env: fake.env });
  assert.equal(stdout, "token/a revoked\n");
  assert.deepEqual(fake.requests("revokeApiToken"), [{ id: "a" }]);
  const { stderr } = await runCommand(["token", "revoke"], { env: fake.env });
  assert.match(stderr, /ID/);
  assert.equal(fake.requests("revokeApiToken").length, 1);
});
