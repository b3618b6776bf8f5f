import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

const NAME = "demand-20300506T070809123Z.backup";
const NOW_MS = Date.UTC(2030, 4, 7);
const MADE_AT = { seconds: BigInt(NOW_MS / 1000 - 86_400), nanos: 0 };
const BACKUP = { name: NAME, madeAt: MADE_AT, sizeBytes: 65n, scheduled: false };
const BODY = Buffer.from("FORAGE STORE BACKUP 1\n");
const WHOLE = Buffer.concat([BODY, Buffer.from(`${createHash("sha256").update(BODY).digest("hex")}\n`)]);

let fake: FakeCoordinator;
let sent: Buffer;
const forage = (...argv: string[]): Promise<Result> =>
  runCommand(argv, { env: fake.env, nowMs: () => NOW_MS });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  sent = WHOLE;
  fake.answers = {
    createBackup: () => ({ backup: BACKUP, revision: 7n, records: 3n }),
    listBackups: () => ({ backups: [BACKUP, { ...BACKUP, name: "store-1", scheduled: true }] }),
    getBackup: (call) => {
      call.write({ frame: { $case: "backup", value: BACKUP } });
      for (const byte of sent) call.write({ frame: { $case: "data", value: Buffer.from([byte]) } });
      call.end();
    },
  };
});

test("prints the name of a created backup, and how to copy it", async () => {
  const { stdout, exitCode } = await forage("backup", "create");
  assert.equal(exitCode, 0);
  assert.equal(
    stdout,
    `${NAME}: 3 records at revision 7, verified; to copy it here: forage backup get ${NAME}\n`,
  );
  assert.equal((await forage("backup", "create", "-o", "name")).stdout, `backup/${NAME}\n`);
  assert.equal(JSON.parse((await forage("backup", "create", "-o", "json")).stdout).backup.name, NAME);
});

test("lists backups with age, size and origin", async () => {
  const { stdout } = await forage("backup", "ls");
  assert.match(
    stdout,
    /^NAME +AGE +BYTES +MADE\ndemand-\S+ +1d +65 +on demand\nstore-1 +1d +65 +by schedule\n$/,
  );
});

test("writes a verified copy that only its owner can read", async () => {
  const path = join(fake.dir, "whole.backup");
  const { stdout, stderr, exitCode } = await forage("backup", "get", `backup/${NAME}`, path);
  assert.equal(exitCode, 0, stderr);
  assert.equal(stdout, `${path}: ${WHOLE.length} bytes, verified\n`);
  assert.deepEqual(readFileSync(path), WHOLE);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(fake.requests("getBackup").at(-1), { name: NAME });
});

test("leaves no file after a truncated backup, and replaces no existing file", async () => {
  const path = join(fake.dir, "cut.backup");
  sent = WHOLE.subarray(0, -1);
  const cut = await forage("backup", "get", NAME, path);
  assert.equal(cut.exitCode, 1);
  assert.match(cut.stderr, /is damaged or was cut off/);
  assert.deepEqual(
    readdirSync(fake.dir).filter((name) => name.startsWith("cut")),
    [],
  );
  writeFileSync(path, "mine");
  const present = await forage("backup", "get", NAME, path);
  assert.match(present.stderr, /cut\.backup exists: name another file/);
  assert.equal(readFileSync(path, "utf8"), "mine");
  const outside = await forage("backup", "get", "../x");
  assert.match(outside.stderr, /"\.\.\/x" is not the name of a backup/);
  assert.equal(existsSync("../x"), false);
});
