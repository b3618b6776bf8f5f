import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

const NAME = "forage-support-20300507T000000Z";
let fake: FakeCoordinator;
const forage = (...argv: string[]): Promise<Result> =>
  runCommand(argv, { env: fake.env, nowMs: () => Date.UTC(2030, 4, 7) });
const read = (path: string, name: string): string =>
  execFileSync("tar", ["-xzOf", path, `${NAME}/${name}`]).toString();

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.answers = {
    getSupportBundle: (call) => {
      const part = (path: string, content: string, problem = ""): void =>
        void call.write({ path, content: Buffer.from(content), problem });
      part("coordinator/log.jsonl", "one\n");
      part("coordinator/log.jsonl", "two\n");
      part("nodes/n1/agent", "", "node n1 is not connected");
      part("audit.jsonl", "{}\n");
      call.end();
    },
  };
});

test("writes every file into an archive that only its owner can read", async () => {
  const path = join(fake.dir, "whole.tar.gz");
  const { stdout, stderr, exitCode } = await forage("support-bundle", path, "--node", "n1", "--node", "n2");
  assert.equal(exitCode, 0, stderr);
  assert.equal(stdout, `${path}: ${statSync(path).size} bytes\n`);
  assert.match(stderr, /^not complete: nodes\/n1\/agent: node n1 is not connected$/m);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(read(path, "coordinator/log.jsonl"), "one\ntwo\n");
  assert.equal(read(path, "audit.jsonl"), "{}\n");
  assert.match(read(path, "client/doctor.json"), /"subject": "coordinator"/);
  assert.match(read(path, "contents.json"), /"problem": "node n1 is not connected"/);
  assert.deepEqual(fake.requests("getSupportBundle").at(-1), { nodes: ["n1", "n2"] });
  // No file contains the token of the client.
  const token = readFileSync(fake.env.FORAGE_TOKEN_FILE ?? "", "utf8").trim();
  assert.ok(token.length > 10);
  assert.ok(!execFileSync("tar", ["-xzOf", path]).toString().includes(token));
});

test("keeps complete files when the coordinator fails, and exits with 1", async () => {
  const path = join(fake.dir, "cut.tar.gz");
  fake.answers = {
    getSupportBundle: (call) => {
      call.write({ path: "nodes.jsonl", content: Buffer.from("{}\n"), problem: "" });
      call.emit("error", Object.assign(new Error("gone"), { code: status.UNAVAILABLE, details: "it stops" }));
    },
  };
  const { stderr, exitCode } = await forage("support-bundle", path);
  assert.equal(exitCode, 1);
  assert.match(stderr, /^not complete: coordinator: /m);
  assert.equal(read(path, "nodes.jsonl"), "{}\n");
});

test("replaces no existing file, and leaves none after an invalid command line", async () => {
  const path = join(fake.dir, "whole.tar.gz");
  const present = await forage("support-bundle", path);
  assert.match(present.stderr, /whole\.tar\.gz exists: name another file/);
  fake.answers = {
    getSupportBundle: (call) => {
      const details = 'there is no node "n9"';
      call.emit("error", Object.assign(new Error(details), { code: status.NOT_FOUND, details }));
    },
  };
  const wrong = await forage("support-bundle", join(fake.dir, "wrong.tar.gz"), "--node", "n9");
  assert.equal(wrong.exitCode, 1);
  assert.match(wrong.stderr, /there is no node "n9"/);
  assert.deepEqual(
    readdirSync(fake.dir).filter((name) => name.startsWith("wrong")),
    [],
  );
});
