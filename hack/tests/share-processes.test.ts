import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { selectTestFiles } from "./select-test-files.ts";
import { divideAmongProcesses, needsOwnProcess, shareProcesses } from "./share-processes.ts";

const root = join(import.meta.dirname, "..", "..");

test("a process has at most as many files as permitted, all of one package, and a file that needs it has its own", () => {
  const files = [..."abcdefghijklmnopqrstu"].map((name) => `agent/src/${name}.test.ts`);
  const processes = divideAmongProcesses(
    {
      files: [...files, "cli/src/a.test.ts", "cli/src/b.test.ts", "cli/src/own.test.ts", "cli/src/z.test.ts"],
      perProcess: 20,
    },
    (path) => path.includes("own"),
  );
  assert.deepEqual(processes, [
    files.slice(0, 20),
    files.slice(20),
    ["cli/src/a.test.ts", "cli/src/b.test.ts", "cli/src/z.test.ts"],
    ["cli/src/own.test.ts"],
  ]);
});

test("a file that starts many programs has its own process", () => {
  const { processes } = selectTestFiles(root, ["coordinator/test/store/crash.test.ts"]);
  assert.deepEqual(
    processes.map((path) => needsOwnProcess(root, path)),
    [true],
  );
});

test("every unit test file is in exactly one process", () => {
  const { unit } = selectTestFiles(root, []);
  const processes = divideAmongProcesses({ files: unit, perProcess: 20 }, (path) =>
    needsOwnProcess(root, path),
  );
  assert.deepEqual(processes.flat().sort(), unit.toSorted());
  assert.ok(processes.length < unit.length / 4, `${processes.length} processes`);
});

test("files that wait while they are loaded, mock timers, or use the process itself need their own", async (t) => {
  const dir = await temporary(t);
  const needs = async (text: string): Promise<boolean> => {
    await writeFile(join(dir, "a.test.ts"), text);
    return needsOwnProcess(dir, "a.test.ts");
  };
  for (const text of [
    "await prepared();",
    'process.once("SIGTERM", stop);',
    "process.exitCode = 1;",
    "process.memoryUsage();",
    'process.env.HOME = "/tmp";',
    'process.env[name] ??= "x";',
    "delete process.env.HOME;",
    'import { exitCode } from "node:process";',
    "t.mock.timers.enable();",
    'mock.method(fs, "open");',
    "globalThis.fetch = fake;",
  ])
    assert.equal(await needs(`test("x", () => {});\n${text}\n`), true, text);
  for (const text of [
    "afterEach(() => {});",
    't.mock.method(store, "range");',
    'import { aProcess } from "./support/process.ts";',
    "run(process.execPath, process.env.HOME);",
    "process.nextTick(go);",
  ])
    assert.equal(await needs(`test("x", () => {});\n${text}\n`), false, text);
});

test("a module loads its files in order, and a failure names the file of the test", async (t) => {
  const dir = await temporary(t);
  await mkdir(join(dir, "cli"));
  const write = (name: string, body: string) =>
    writeFile(
      join(dir, "cli", `${name}.test.mjs`),
      `import "../slow.mjs";\nimport { test } from "node:test";\ntest("${name}", () => { ${body} });\nclass Later extends Error {}\n`,
    );
  // Loads so slowly that the tests of the file before could end meanwhile.
  await writeFile(join(dir, "slow.mjs"), "await new Promise((resolve) => setTimeout(resolve, 200));\n");
  await writeFile(
    join(dir, "cli", "a.test.mjs"),
    'import { test } from "node:test";\ntest("a", () => {});\n',
  );
  await write("b", 'throw new Later("broken");');
  const { paths, names } = shareProcesses(
    dir,
    [{ files: ["cli/a.test.mjs", "cli/b.test.mjs"], perProcess: 2 }],
    dir,
  );
  assert.equal(paths.length, 1);
  const [path = ""] = paths;
  assert.equal(names.get(path), "cli/a.test.mjs and 1 more");

  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const ran = promisify(execFile)(process.execPath, ["--test", "--test-reporter=spec", path], { env });
  const { stdout } = await ran.catch((error: { stdout: string }) => error);
  assert.match(stdout, /✔ a [\s\S]*✖ b /);
  // The test begins when its file has been loaded to the end.
  assert.match(stdout, /Error: broken/);
  assert.match(stdout, /test at \S*cli\/b\.test\.mjs:3/);
});

test("hooks of a file apply to its own tests", async (t) => {
  const dir = await temporary(t);
  await mkdir(join(dir, "cli"));
  const hooks = ["before", "beforeEach", "afterEach", "after"];
  const write = (name: string, lines: readonly string[]) =>
    writeFile(
      join(dir, "cli", `${name}.test.mjs`),
      ['import { after, afterEach, before, beforeEach, test } from "node:test";', ...lines].join("\n"),
    );
  const loggingHooks = (name: string) =>
    hooks.map((hook) => `${hook}(() => console.log("${hook} ${name}"));`);
  const loggingTest = (name: string) => `test("${name}", () => console.log("test ${name}"));`;
  await write("a", [...loggingHooks("a"), loggingTest("a1"), loggingTest("a2")]);
  await write("b", [loggingTest("b")]);
  await write("c", [...loggingHooks("c"), loggingTest("c")]);
  const files = ["a", "b", "c"].map((name) => `cli/${name}.test.mjs`);
  const [path = ""] = shareProcesses(dir, [{ files, perProcess: 3 }], dir).paths;

  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, ["--test-reporter=spec", path], { env });
  assert.deepEqual(
    stdout.split("\n").filter((line) => /^(before|after|test)/.test(line)),
    [
      ...["before a", "beforeEach a", "test a1", "afterEach a", "beforeEach a", "test a2", "afterEach a"],
      ...["after a", "test b", "before c", "beforeEach c", "test c", "afterEach c", "after c"],
    ],
  );
  assert.match(stdout, /▶ cli\/a\.test\.mjs\n {2}✔ a1/, "failures of its tests name the file");
});

test("a file with hooks that can't be loaded fails", async (t) => {
  const dir = await temporary(t);
  await mkdir(join(dir, "cli"));
  await writeFile(join(dir, "cli", "a.test.mjs"), 'import "./missing.mjs";\nafter(() => {});\n');
  await writeFile(
    join(dir, "cli", "b.test.mjs"),
    'import { test } from "node:test";\ntest("b", () => {});\n',
  );
  const files = ["cli/a.test.mjs", "cli/b.test.mjs"];
  const [path = ""] = shareProcesses(dir, [{ files, perProcess: 2 }], dir).paths;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  await assert.rejects(
    promisify(execFile)(process.execPath, ["--test-reporter=spec", path], { env }),
    (error: { stdout: string }) => /✔ b [\s\S]*✖ cli\/a\.test\.mjs[\s\S]*missing\.mjs/.test(error.stdout),
  );
});

async function temporary(t: { after(fn: () => Promise<void>): void }): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "forage-share-processes-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
