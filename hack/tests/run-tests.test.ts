import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { mergeRuns, type RunResult, renderBusiest, renderSlowest } from "./run-tests.ts";

test("the final counts of several runs are printed once, added up, after everything else", async () => {
  const result: RunResult = { failed: false, files: [], groups: [] };
  const merged = mergeRuns([aRun("a", 2), aRun("b", 3)], result);

  const events = (await drain(merged)).map(({ type, data }) => `${type} ${data.message ?? data.name}`);

  assert.deepEqual(events, [
    "test:pass a",
    "test:diagnostic a says tests 7",
    "test:pass b",
    "test:diagnostic b says tests 7",
    "test:summary undefined",
    "test:diagnostic tests 5",
    "test:diagnostic duration_ms 3.5",
  ]);
  assert.equal(result.failed, false);
});

test("a failure in any run fails the whole, but a test marked as todo doesn't", async () => {
  const failedAfter = async (data: Record<string, unknown>): Promise<boolean> => {
    const result: RunResult = { failed: false, files: [], groups: [] };
    const failure = (async function* () {
      yield { type: "test:fail", data: { nesting: 0, name: "f", ...data } };
    })();
    await drain(mergeRuns([failure, aRun("b", 1)], result));
    return result.failed;
  };

  assert.equal(await failedAfter({}), true);
  assert.equal(await failedAfter({ todo: true }), false);
});

test("the slowest files are listed with their durations, the total and the sum", async () => {
  const result: RunResult = { failed: false, files: [], groups: [] };
  const events = (async function* () {
    for (let i = 1; i <= 12; i++)
      yield { type: "test:summary", data: { file: `/root/a/${i}.test.ts`, duration_ms: i * 1000 } };
  })();
  await drain(mergeRuns([events], result));
  result.groups.push({ name: "unit tests", durationMs: 60_000, busy: 0.914 });

  const lines = renderSlowest((path) => relative("/root", path), result, 65_432).split("\n");
  assert.equal(lines.length, 15);
  assert.equal(lines[1], "   12.0 s  a/12.test.ts");
  assert.equal(lines[10], "    3.0 s  a/3.test.ts");
  assert.equal(lines[11], "   60.0 s  unit tests, processors busy 91 %");
  assert.equal(lines[12], "   65.4 s  all 12 processes of test files");
  assert.equal(lines[13], "   78.0 s  their times added up");
});

test("the files with the most processor time are named with it, and the sum of all files", () => {
  const times = new Map(Array.from({ length: 12 }, (_, i) => [`/root/a/${i + 1}.test.ts`, (i + 1) * 1000]));
  const lines = renderBusiest((path) => relative("/root", path), times).split("\n");
  assert.equal(lines.length, 13);
  assert.equal(lines[1], "   12.0 s  a/12.test.ts");
  assert.equal(lines[10], "    3.0 s  a/3.test.ts");
  assert.match(lines[11] ?? "", /^ {3}78\.0 s {2}the processor times of all files/);
});

test("files beside a group run at the same time with the remaining processor time, and are reported after it", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-run-tests-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const write = (name: string, text: string) => writeFile(join(dir, name), text);
  await write("group.test.mjs", aFile("group", 'await waitFor("beside");'));
  await write("beside.test.mjs", aFile("beside", 'write("beside"); await waitFor("group");'));
  await write("all.mjs", runner("group.test.mjs", "beside.test.mjs"));

  const { stdout } = await promisify(execFile)(process.execPath, ["all.mjs"], { cwd: dir, env: outside() });

  const [group = "", beside = ""] = stdout.split("\n");
  assert.match(group, /^group SCHED_OTHER/);
  assert.match(beside, /^beside (SCHED_IDLE|nice 19)/);
});

/** Returns a test file that writes its name into its folder, does something, and reports how it is scheduled. */
function aFile(name: string, body: string): string {
  return `
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { getPriority } from "node:os";
import { test } from "node:test";
const at = (name) => new URL("./ran-" + name, import.meta.url);
const write = (name) => writeFileSync(at(name), "");
const waitFor = async (name) => {
  while (!existsSync(at(name))) await new Promise((resolve) => setTimeout(resolve, 5));
};
test("${name}", async (t) => {
  write("${name}");
  ${body}
  const policy = /SCHED_\\w+/.exec(execFileSync("chrt", ["--pid", String(process.pid)], { encoding: "utf8" }));
  t.diagnostic("${name} " + (getPriority() === 19 ? "nice 19" : policy[0]));
});
`;
}

/** Returns a program that runs the files and prints the diagnostics of the tests. */
function runner(file: string, beside: string): string {
  return `
import { runsOf } from ${JSON.stringify(join(import.meta.dirname, "run-tests.ts"))};
const group = { files: ["${file}"], concurrency: 1, beside: { files: ["${beside}"], concurrency: 1 } };
for (const run of runsOf(process.cwd(), [group]))
  for await (const { type, data } of run)
    if (type === "test:diagnostic" && data.file !== undefined && !/^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(data.message)) console.log(data.message);
`;
}

/** Returns the environment without the variables that mark the process of a test file. */
function outside(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return env;
}

async function* aRun(name: string, tests: number) {
  yield { type: "test:pass", data: { nesting: 0, name } };
  yield { type: "test:diagnostic", data: { nesting: 0, file: "f.ts", message: `${name} says tests 7` } };
  yield { type: "test:diagnostic", data: { nesting: 0, message: `tests ${tests}` } };
  yield { type: "test:diagnostic", data: { nesting: 0, message: "duration_ms 1.75" } };
  yield { type: "test:summary", data: { success: true } };
}

async function drain<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
