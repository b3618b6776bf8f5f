import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type ContainerSpec, RuntimeError } from "../runtime.ts";
import { DataRoots } from "./data-roots.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";
import { RunContainer } from "./run-container.ts";

const ID = "ab".repeat(32);

test("closes the file with the environment after the call, whatever its result", async (t) => {
  const { run, spec, cli, dir } = given(t);
  await run.run(spec("first"), signal);
  cli.error = new RuntimeError("START_FAILED", "no such program", { retryable: false });
  await assert.rejects(run.run(spec("third"), signal), { code: "START_FAILED" });
  assert.deepEqual(openFilesBelow(dir), []);
});

test("removes what is left of a failed start, and releases the name", async (t) => {
  const { run, spec, cli } = given(t);
  cli.error = new RuntimeError("START_FAILED", "no such program", { retryable: false });
  await assert.rejects(run.run(spec("web"), signal), { code: "START_FAILED" });
  assert.deepEqual(cli.removed, [ID]);
  cli.error = undefined;
  cli.removed.length = 0;
  assert.deepEqual(await run.run(spec("web"), signal), { id: ID });
});

test("removes nothing after an interrupted call, because the container may run", async (t) => {
  const { run, spec, cli } = given(t);
  cli.error = new RuntimeError("TIMEOUT", "killed", { retryable: true });
  await assert.rejects(run.run(spec("web"), signal), { code: "TIMEOUT" });
  assert.deepEqual(cli.removed, []);
  cli.error = undefined;
  await assert.rejects(run.run(spec("web"), signal), { code: "ALREADY_EXISTS" });
});

const { signal } = new AbortController();

/** Returns the paths of the files below a folder that this process has open. Removed files count. */
function openFilesBelow(folder: string): string[] {
  return readdirSync("/proc/self/fd")
    .map(linkOf)
    .filter((link) => link.startsWith(folder));
}

/** Returns the path of the open file, or an empty string if it has been closed since it was listed. */
function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

function given(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-run-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const dataRoots = new DataRoots({
    dataRoots: join(dir, "containers"),
    commonRoot: join(dir, "common"),
    volumes: join(dir, "volumes"),
    address: "/run/containerd/containerd.sock",
  });
  const cli = new FakeCli();
  const parts = { dataRoots, privateDir: dir, labels: {}, programDir: dir };
  const run = new RunContainer({ ...parts, cli: cli as unknown as NerdctlCli });
  const spec = (name: string): ContainerSpec => ({
    ...{ name, labels: {}, image: "localhost/app:1", command: [], args: [], binds: [], hostname: "web" },
    env: [{ name: "SECRET", value: "x" }],
    networkNamespace: "/run/netns/p1",
    logFile: join(dir, `${name}.log`),
  });
  return { run, spec, cli, dir };
}

/** Writes the id of the created container and then fails as scripted. */
class FakeCli {
  error: RuntimeError | undefined;
  readonly removed: string[] = [];

  async call(args: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
    if (args[0] === "rm") {
      this.removed.push(...args.slice(args.indexOf("--") + 1));
      return { stdout: this.removed.join("\n"), stderr: "" };
    }
    const idFile = args.find((arg) => arg.startsWith("--cidfile="))?.slice("--cidfile=".length);
    if (idFile === undefined) return { stdout: "", stderr: "" };
    writeFileSync(idFile, ID);
    if (this.error !== undefined) throw this.error;
    return { stdout: `${ID}\n`, stderr: "" };
  }
}
