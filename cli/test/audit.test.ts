import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type AuditFields, type ChainHead, EMPTY_CHAIN, sealEntry } from "@forage/common/audit-chain";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
let lines: string[];
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  lines = chain(5);
  fake.answers = {
    listAudit: ({ after: last, newest }: { after: bigint; newest: boolean }) => {
      // Each page has two entries, so that a whole log needs several pages.
      const start = newest ? lines.length - 2 : Number(last);
      return { lines: lines.slice(start, start + 2), newestSequence: BigInt(lines.length) };
    },
  };
});

test("lists the newest calls with caller, object and result", async () => {
  const { stdout, exitCode } = await forage("audit --limit 2");
  assert.equal(exitCode, 0);
  assert.match(stdout, /^ *AGE {2}CALLER +CALL +OBJECT +RESULT +FROM\n/);
  assert.match(stdout, /token:abc {2}PutObject {2}shop secret\/db-5 {2}OK +10\.0\.0\.1:5\n$/);
  assert.deepEqual(fake.requests("listAudit"), [{ after: 0n, limit: 2, newest: true }]);
  assert.equal(JSON.parse((await forage("audit -o json")).stdout)[1].sequence, 5);
});

test("prints number and hash of the last entry with --verify, after checking all entries", async () => {
  const { stdout, exitCode } = await forage("audit --verify");
  assert.equal(exitCode, 0);
  const noted = /^5 entries from 1 to 5 form one chain; the last is (5:[0-9a-f]{64})\n$/.exec(stdout)?.[1];
  assert.ok(noted);
  assert.equal((await forage(`audit --verify --contains ${noted}`)).exitCode, 0);
  lines = chain(6, "/a/Another");
  const replaced = await forage(`audit --verify --contains ${noted}`);
  assert.equal(replaced.exitCode, 1);
  assert.match(replaced.stderr, /the audit log has no entry 5 with the hash [0-9a-f]{64}: it was replaced/);
});

test("prints the entries as they are stored with --export", async () => {
  const { stdout, stderr, exitCode } = await forage("audit --export");
  assert.deepEqual([stdout, exitCode], [`${lines.join("\n")}\n`, 0]);
  assert.match(stderr, /^5 entries from 1 to 5/);
});

test("exits with 1 for a changed, missing or truncated entry", async () => {
  for (const [change, message] of [
    [(all: string[]) => all.with(2, (all[2] ?? "").replace("db-3", "db-9")), /after entry 2 was changed/],
    [(all: string[]) => all.toSpliced(2, 1), /missing after entry 2/],
  ] as const) {
    lines = change(chain(5));
    for (const way of ["--verify", "--export"]) {
      const { stderr, exitCode } = await forage(`audit ${way}`);
      assert.equal(exitCode, 1, way);
      assert.match(stderr, message);
    }
  }
  lines = chain(5);
  fake.answers.listAudit = ({ after: last }: { after: bigint }) => {
    return { lines: lines.slice(Number(last), 3), newestSequence: 5n };
  };
  for (const way of ["--verify", "--export"]) {
    const { stderr, exitCode } = await forage(`audit ${way}`);
    assert.equal(exitCode, 1, way);
    assert.match(stderr, /missing after entry 3: the newest one is 5/);
  }
});

test("does not treat an entry that is no longer kept as proof of a change", async () => {
  const noted = `1:${"a".repeat(64)}`;
  const all = chain(5);
  fake.answers.listAudit = ({ after: last }: { after: bigint }) => {
    return { lines: all.slice(Math.max(2, Number(last))), newestSequence: 5n };
  };
  const { stderr, exitCode } = await forage(`audit --verify --contains ${noted}`);
  assert.equal(exitCode, 1);
  assert.match(stderr, /entry 1 is no longer kept: the oldest one is 3/);
});

test("refuses invalid options before any call", async () => {
  for (const [line, message] of [
    ["audit --contains 1:00", /--contains needs --verify or --export/],
    ["audit --verify --contains 1:00", /is not SEQUENCE:HASH/],
    ["audit --verify --limit 3", /--limit is for the list/],
    ["audit --limit 0", /is not a number from 1 to 1000/],
  ] as const)
    assert.match((await forage(line)).stderr, message);
  assert.equal(fake.calls.length, 0);
});

function chain(count: number, method = "/forage.operator.v1.OperatorService/PutObject"): string[] {
  let head: ChainHead = EMPTY_CHAIN;
  return Array.from({ length: count }, (_, index) => {
    const name = `db-${index + 1}`;
    const fields: AuditFields = {
      event: "call",
      method,
      peer: `10.0.0.1:${index + 1}`,
      caller: "token:abc",
      target: { namespace: "shop", kind: "secret", name },
      result: "OK",
    };
    const sealed = sealEntry(fields, "2026-01-01T00:00:00.000Z", head);
    head = sealed.head;
    return sealed.line;
  });
}
