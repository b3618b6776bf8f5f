import assert from "node:assert/strict";
import { test } from "node:test";
import { RecentLines } from "@forage/common/recent-lines";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { SupportFile } from "@forage/proto/forage/agent/v1/agent";
import { type SupportSources, supportFile, supportFiles } from "./support-files.ts";

const CANARY = "c4n4ryV4lue";

test("creates every file without secrets, and gives the reason for a missing one", async () => {
  const recentLog = new RecentLines(10_000);
  recentLog.add(`{"msg":"called","authorization":"Bearer ${CANARY}"}\n`);
  const files = await collected({
    recentLog,
    problems: () => [`coordinator: https://a:${CANARY}@host/`],
    metrics: () => Promise.reject(new Error("the disk is gone")),
    checks: async () => '[{"check":"kernel"}]\n',
  });
  assert.deepEqual(
    files.map(({ path, problem }) => [path, problem]),
    [
      ["about.json", ""],
      ["config.json", ""],
      ["log.jsonl", ""],
      ["metrics.txt", "the disk is gone"],
      ["checks.json", ""],
    ],
  );
  assert.doesNotMatch(JSON.stringify(files), new RegExp(CANARY));
  assert.equal(files[4]?.content, '[{"check":"kernel"}]\n');
});

test("keeps the newest lines of a log that is too large", async () => {
  const { content, problem } = await supportFile("log.jsonl", async () => "line\n".repeat(500_000));
  assert.ok(content.length > 700_000 && content.length < 800_000);
  assert.ok(content.startsWith("line\n") && content.endsWith("line\n"));
  assert.match(problem, /^the first \d+ characters were left out$/);
});

test("does not wait for checks that hang", async () => {
  const clock = new VirtualClock();
  const reading = collected({ clock, checks: () => new Promise(() => clock.advance(25_000)) });
  assert.match((await reading)[4]?.problem ?? "", /^the checks did not end within 25 s$/);
});

async function collected(change: Partial<SupportSources>): Promise<SupportFile[]> {
  const sources = {
    config: { dataDir: "/var/lib/forage/agent" },
    ...{
      version: "1.0.0",
      clock: new VirtualClock(),
      problems: () => [],
      link: () => ({ kind: "connecting" }),
    },
    ...{ assignmentRevision: () => 7n, metrics: async () => "", checks: async () => "" },
    ...change,
  } as unknown as SupportSources;
  const files: SupportFile[] = [];
  for await (const file of supportFiles(sources)) files.push(file);
  return files;
}
