import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { bundlePrograms } from "../bundling/bundle-programs.ts";
import { isAlive } from "../lib/process-identity.ts";
import { waitFor } from "../lib/wait-for.ts";
import { type ProgramSpec, readRunning } from "./program.ts";
import { endPrograms, type ProgramsOptions, runPrograms } from "./programs.ts";

const bundleDir = mkdtempSync(join(tmpdir(), "forage-supervisor-"));

before(async () => {
  const root = join(import.meta.dirname, "..", "..");
  await bundlePrograms({ root, outDir: bundleDir, programs: { supervisor: "hack/instance/supervise.ts" } });
});

after(() => rmSync(bundleDir, { recursive: true, force: true }));

test("a program that dies is restarted, and a running one is unchanged by a second call", async (t) => {
  const { options, aProgram } = aPlace(t);
  const spec = aProgram("sleeper", "1");
  assert.equal(await runPrograms(options, [spec]), true);
  const first = await running(options, "sleeper");

  assert.equal(await runPrograms(options, [spec]), false);
  assert.deepEqual(readRunning(options.dir, "sleeper"), first);

  const logged = (text: string) =>
    waitFor(() => existsSync(spec.logPath) && readFileSync(spec.logPath, "utf8") === text, {
      what: `the log is ${JSON.stringify(text)}`,
      limitMs: 60_000,
    });
  await logged("started\n");
  process.kill(first.identity.pid, "SIGKILL");
  const second = await waitFor(
    () => {
      const now = readRunning(options.dir, "sleeper");
      return now && now.identity.pid !== first.identity.pid && now;
    },
    { what: "it runs again", limitMs: 60_000 },
  );
  assert.equal(second.restarts, 1);
  await logged("started\nstarted\n");
});

test("a new supervisor takes over the programs of a killed one, and restarts them when they die", async (t) => {
  const { options, aProgram } = aPlace(t);
  await runPrograms(options, [aProgram("sleeper", "1")]);
  const first = await running(options, "sleeper");
  process.kill((await running(options, "supervisor")).identity.pid, "SIGKILL");
  await waitFor(() => !readRunning(options.dir, "supervisor"), {
    what: "the supervisor is gone",
    limitMs: 60_000,
  });

  assert.equal(await runPrograms(options, [aProgram("sleeper", "1")]), true);
  assert.equal((await running(options, "sleeper")).identity.pid, first.identity.pid);
  process.kill(first.identity.pid, "SIGKILL");
  await waitFor(() => readRunning(options.dir, "sleeper")?.restarts === 1, {
    what: "it runs again",
    limitMs: 60_000,
  });
});

test("restarts a changed program, ends a removed one, and leaves the others alone", async (t) => {
  const { options, aProgram } = aPlace(t);
  await runPrograms(options, [aProgram("kept", "1"), aProgram("changed", "1"), aProgram("dropped", "1")]);
  const [kept, changed, dropped] = await Promise.all(
    ["kept", "changed", "dropped"].map((name) => running(options, name)),
  );

  await runPrograms(options, [aProgram("kept", "1"), aProgram("changed", "2")]);

  assert.equal((await running(options, "kept")).identity.pid, kept?.identity.pid);
  assert.notEqual((await running(options, "changed")).identity.pid, changed?.identity.pid);
  assert.equal(dropped && isAlive(dropped.identity), false);
});

test("programs without a record are ended, too, and ending may be repeated", async (t) => {
  const { options, aProgram } = aPlace(t);
  await runPrograms(options, [aProgram("sleeper", "1")]);
  const { identity } = await running(options, "sleeper");
  rmSync(join(options.dir, "sleeper.json"));

  await endPrograms(options.dir);
  await endPrograms(options.dir);

  assert.equal(isAlive(identity), false);
  assert.equal(readRunning(options.dir, "supervisor"), undefined);
});

function aPlace(t: TestContext) {
  const base = mkdtempSync(join(tmpdir(), "forage-programs-"));
  const supervisor = { node: process.execPath, script: join(bundleDir, "supervisor.mjs") };
  const options: ProgramsOptions = { dir: join(base, "run"), supervisor };
  t.after(async () => {
    await endPrograms(options.dir);
    rmSync(base, { recursive: true });
  });
  // Prints its input at each start, and keeps running. The path distinguishes it from another test's.
  const aProgram = (name: string, digest: string): ProgramSpec => {
    const input = join(base, `${name}.input`);
    writeFileSync(input, "started\n");
    return {
      name,
      file: "/usr/bin/tail",
      args: ["-n", "+1", "-f", input],
      logPath: join(base, `${name}.log`),
      digest,
    };
  };
  return { options, aProgram };
}

function running(options: ProgramsOptions, name: string) {
  return waitFor(() => readRunning(options.dir, name), { what: `${name} runs`, limitMs: 60_000 });
}
