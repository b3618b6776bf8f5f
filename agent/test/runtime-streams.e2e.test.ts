import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findProcesses, isAlive, type ProcessIdentity } from "../../hack/lib/process-identity.ts";
import { run } from "../../hack/lib/run.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { STDIN_HOLDER } from "../src/runtime/nerdctl/helper-programs.ts";
import { type ContainerSpec, HOST_NETWORK } from "../src/runtime/runtime.ts";
import { inputOpener, type OpenInput } from "../src/sessions/container-input.ts";
import { TerminalInputs } from "../src/sessions/terminal-input.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { rejectsWith, runToEnd } from "./runtime-contract.ts";

let it: NerdctlUnderTest;
before(async () => {
  it = await openNerdctl();
});
after(() => it?.close());

const LIMIT_MS = 60_000;
const logOf = (spec: ContainerSpec) => (existsSync(spec.logFile) ? readFileSync(spec.logFile, "utf8") : "");
const logged = (spec: ContainerSpec, pattern: RegExp) =>
  waitFor(() => pattern.test(logOf(spec)), {
    what: `${pattern} in the log`,
    limitMs: LIMIT_MS,
    explain: () => logOf(spec),
  });

const openInput: OpenInput = (options, signal) =>
  inputOpener(
    async (id) => (await it.runtime.inspect(id, signal))?.pid,
    (pid) => new TerminalInputs().open(pid),
  )(options, signal);

/** Finds the process that keeps the container's input open. */
async function holderOf(id: string, signal: AbortSignal): Promise<ProcessIdentity> {
  const { pid } = (await it.runtime.inspect(id, signal)) ?? {};
  const { dev, ino } = statSync(`/proc/${pid}/fd/0`);
  const [holder] = findProcesses((argv) => argv[0] === "flock").filter((process) => {
    const held = statSync(`/proc/${process.pid}/fd/${STDIN_HOLDER.descriptor}`, { throwIfNoEntry: false });
    return held?.dev === dev && held.ino === ino;
  });
  assert.ok(holder, "no process holds the input");
  return holder;
}

const gone = (holder: ProcessIdentity) =>
  waitFor(() => !isAlive(holder), { what: "the input is not held any more", limitMs: LIMIT_MS });

test("without stdin, input ends at once; with stdin, it stays open until a session ends it", async ({
  signal,
}) => {
  const script = ["sh", "-c", "echo begin; read line; echo end $?"];
  const closed = it.spec(script);
  const { id } = await runToEnd(it, closed, signal);
  assert.match(logOf(closed), /^begin\nend 1\n$/);

  const open = it.spec(script, { stdin: true });
  const { id: waiting } = await it.runtime.run(open, signal);
  await logged(open, /begin/);
  const holder = await holderOf(waiting, signal);
  const input = await openInput({ id: waiting, kind: "pipe", ends: false }, signal);
  await input.write(Buffer.from("hello\n"));
  input.close();
  await logged(open, /end 0/);
  await it.runtime.remove([id, waiting], signal);
  await gone(holder);

  const ending = it.spec(["sh", "-c", "while read line; do echo got $line; done; echo end"], { stdin: true });
  const { id: reader } = await it.runtime.run(ending, signal);
  const endable = await holderOf(reader, signal);
  const last = await openInput({ id: reader, kind: "pipe", ends: true }, signal);
  await last.write(Buffer.from("one\n"));
  last.end();
  await logged(ending, /^got one\nend\n$/);
  await gone(endable);
  await it.runtime.remove([reader], signal);
});

test("keys, sizes and signals reach the program in a terminal", async ({ signal }) => {
  const script =
    "trap 'echo caught' INT; echo ready; while :; do read line && echo got $line && stty size; done";
  const spec = it.spec(["sh", "-c", script], { tty: true, stdin: true });
  const { id } = await it.runtime.run(spec, signal);
  await logged(spec, /^ready\r\n/);
  for (const word of ["one", "two"]) {
    const input = await openInput({ id, kind: "terminal", ends: false }, signal);
    input.resize(101, 33);
    await input.write(Buffer.from(`${word}\n`));
    await logged(spec, new RegExp(`got ${word}\r\n33 101\r\n`));
    await input.write(Buffer.from("\x03"));
    await logged(spec, new RegExp(`got ${word}[^]*caught`));
    input.close();
  }
  assert.equal((await it.runtime.inspect(id, signal))?.state, "running");
  await it.runtime.stop(id, 0, signal);
  await it.runtime.remove([id], signal);
});

test("stdin stays open for a user other than root, and with a custom OCI runtime", async ({ signal }) => {
  // The runtime leaves a trace of its use.
  const ociRuntime = join(it.host.dir, "own-runc");
  writeFileSync(ociRuntime, `#!/bin/sh\n: >'${it.host.dir}/own-was-used'\nexec runc "$@"\n`, { mode: 0o755 });
  const user = { uid: 1000, supplementalGroups: [] };
  const spec = it.spec(["sh", "-c", "read line; echo got $line"], { stdin: true, ociRuntime, user });
  const { id } = await it.runtime.run(spec, signal);
  const { pid } = (await it.runtime.inspect(id, signal)) ?? {};
  writeFileSync(`/proc/${pid}/fd/0`, "it\n");
  await logged(spec, /got it/);
  assert.equal(existsSync(join(it.host.dir, "own-was-used")), true);
  await it.runtime.remove([id], signal);
  const shim = it.spec(["true"], { stdin: true, ociRuntime: "io.containerd.other.v2" });
  await rejectsWith("START_FAILED", it.runtime.run(shim, signal));
});

test("a named OCI runtime is used, and a missing one is reported", async ({ signal }) => {
  const ociRuntime = join(it.host.dir, "runc-copy");
  copyFileSync((await run("sh", ["-c", "command -v runc"])).stdout.trim(), ociRuntime);
  const { id } = await it.runtime.run(it.spec(["sleep", "1000"], { ociRuntime }), signal);
  const options = readFileSync(join(bundle(id), "options.json"), "utf8");
  assert.match(options, /runc-copy/);
  await it.runtime.remove([id], signal);
  const missing = it.spec(["true"], { ociRuntime: "/no/such/runtime" });
  await rejectsWith("START_FAILED", it.runtime.run(missing, signal));
  const named = it.spec(["true"], { ociRuntime: "--privileged" });
  await rejectsWith("START_FAILED", it.runtime.run(named, signal));
});

test("a terminal combines stdin, stdout and stderr, its input stays open, and all output is in the log", async ({
  signal,
}) => {
  const script =
    "test -t 0 && test -t 1 && test -t 2 && echo terminal; echo err >&2; echo last; read line; echo end";
  const spec = it.spec(["sh", "-c", script], {
    tty: true,
    stdin: true,
    logFile: join(it.logDir, "a b%25?#&=.log"),
  });
  const { id } = await it.runtime.run(spec, signal);
  await logged(spec, /^terminal\r\nerr\r\nlast\r\n$/);
  assert.equal((await it.runtime.inspect(id, signal))?.state, "running");
  await it.runtime.stop(id, 0, signal);
  await it.runtime.remove([id], signal);
  const short = it.spec(["sh", "-c", "echo all of it; exit 3"], { tty: true });
  const { id: done, ended } = await runToEnd(it, short, signal);
  assert.equal(ended.exitCode, 3);
  await logged(short, /^all of it\r\n$/);
  await it.runtime.remove([done], signal);
  await waitFor(
    () =>
      findProcesses((argv) => argv.some((word) => word.includes(it.host.dir) && word.includes("logger")))
        .length === 0,
    { what: "no logger is left", limitMs: LIMIT_MS },
  );
});

test("uses the image's stop signal", async ({ signal }) => {
  const image = "localhost/forage/stop-signal:1";
  await it.host.loadImage({ name: image, config: { StopSignal: "SIGUSR1" } });
  const script = "trap 'echo got; exit 5' USR1; trap '' TERM; echo ready; while :; do sleep 0.1; done";
  const spec = it.spec(["sh", "-c", script], { image });
  const { id } = await it.runtime.run(spec, signal);
  await logged(spec, /ready/);
  await it.runtime.stop(id, 60_000, signal);
  assert.equal((await it.runtime.inspect(id, signal))?.exitCode, 5);
  assert.match(logOf(spec), /got/);
  await it.runtime.remove([id], signal);
});

test("a container on the host's network has the host's name", async ({ signal }) => {
  const spec = it.spec(["sh", "-c", "readlink /proc/self/ns/net; hostname; cat /etc/hostname"], {
    networkNamespace: HOST_NETWORK,
  });
  const { id } = await runToEnd(it, spec, signal);
  const { stdout } = await run("readlink", ["/proc/self/ns/net"]);
  assert.equal(logOf(spec), `${stdout.trim()}\n${hostname()}\n${hostname()}\n`);
  await it.runtime.remove([id], signal);
});

function bundle(id: string): string {
  const state = join(it.host.dir, "c/state/io.containerd.runtime.v2.task", it.host.namespace, id);
  assert.ok(readdirSync(state).length > 0);
  return state;
}
