import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { findCgroup, readProcesses } from "../src/runtime/cgroup/container-cgroup.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { codeOf, outputOf, rejectsWith } from "./runtime-contract.ts";

let it: NerdctlUnderTest;
let id: string;
before(async () => {
  it = await openNerdctl();
  ({ id } = await it.runtime.run(it.spec(["sleep", "1000"]), AbortSignal.timeout(60_000)));
});
after(() => it?.close());

const PLAIN = { stdin: false, tty: false };
const sh = (script: string) => ["sh", "-c", script];
const exec = (
  command: readonly string[],
  signal: AbortSignal,
  change: { stdin?: boolean; tty?: boolean } = {},
) => it.runtime.exec(id, { ...PLAIN, ...change, command }, signal);

/** Returns ids and command lines of all processes in the container. */
async function running(): Promise<readonly (readonly [number, string])[]> {
  const { pid = 0 } = (await it.runtime.inspect(id, AbortSignal.timeout(60_000))) ?? {};
  const cgroup = findCgroup(pid);
  const pids = cgroup ? readProcesses(cgroup) : [];
  return pids.map((it) => [it, tryRead(`/proc/${it}/cmdline`).split("\0").join(" ").trim()]);
}

async function processes(): Promise<readonly string[]> {
  return (await running()).map(([, line]) => line);
}

/** Returns the bytes that the program has written so far. */
async function writtenBy(program: string): Promise<number> {
  const [pid] = (await running()).find(([, line]) => line.startsWith(`${program} `)) ?? [];
  return Number(/wchar: (\d+)/.exec(tryRead(`/proc/${pid}/io`))?.[1] ?? -2);
}

function tryRead(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

const LINE = 'time=\\"2026-01-01T00:00:00Z\\" level=fatal msg=\\"exec failed with exit code 3\\"';
for (const [what, command, code, stderr] of [
  ["success", sh("exit 0"), 0, ""],
  ["failure", sh("exit 42"), 42, ""],
  ["nerdctl's own code", sh("exit 1"), 1, ""],
  ["a signal", sh("kill -9 $$"), 137, ""],
  ["not executable", ["/etc/passwd"], 126, /permission denied/],
  ["a directory", ["/etc"], 126, /permission denied|is a directory/],
  ["not there", ["/nope"], 127, /no such file/],
  ["an option", ["--privileged"], 127, /"--privileged".*not found/],
  ["dashes", ["--", "x"], 127, /"--".*not found/],
  ["unfinished line", sh("printf half >&2; exit 5"), 5, "half"],
  ["imitates nerdctl, and succeeds", sh(`echo "${LINE}" >&2`), 0, /exit code 3"\n$/],
  ["imitates nerdctl, and fails", sh(`echo "${LINE}" >&2; exit 4`), 4, /exit code 3"\n$/],
] as const) {
  for (const tty of [false, true]) {
    test(`exit code with${tty ? "" : "out"} a terminal: ${what}`, async ({ signal }) => {
      const running = exec(command, signal, { tty });
      const output = await outputOf(running);
      const errors = (tty ? output.stdout.replaceAll("\r\n", "\n") : "") + output.stderr;
      if (typeof stderr === "string") assert.equal(errors, stderr);
      else assert.match(errors, stderr);
      assert.equal(await running.exitCode, code);
    });
  }
}

test("cancelling kills the command with all its children, and nothing else", async ({ signal }) => {
  const bystander = exec(sh("exec sleep 4321"), signal);
  await waitFor(async () => (await processes()).includes("sleep 4321"), {
    what: "the bystander runs",
    limitMs: 90_000,
  });
  const giveUp = new AbortController();
  const stubborn = exec(sh("trap '' TERM HUP INT; sleep 1234 & sleep 1235; wait"), giveUp.signal);
  await waitFor(async () => (await processes()).includes("sleep 1235"), {
    what: "the command runs",
    limitMs: 90_000,
  });
  giveUp.abort();
  await rejectsWith("ABORTED", stubborn.exitCode);
  const left = (await processes()).filter((line) => line.includes("sleep"));
  assert.deepEqual(left.filter((line) => line !== "").sort(), ["sleep 1000", "sleep 4321"]);
  void codeOf(bystander).catch(() => undefined);
});

test("finds a command that daemonizes with another environment, and spares one that starts with it", async ({
  signal,
}) => {
  const giveUp = new AbortController();
  const stubborn = exec(sh("env -i setsid sleep 2345 & sleep 2346"), giveUp.signal);
  const bystanders = Array.from({ length: 3 }, (_, i) => exec(sh(`exec sleep 765${i}`), signal));
  const sleeps = async () => (await processes()).filter((line) => /^sleep (234|765)/.test(line)).sort();
  await waitFor(async () => (await sleeps()).length === 5, { what: "all run", limitMs: 90_000 });
  giveUp.abort();
  await rejectsWith("ABORTED", stubborn.exitCode);
  assert.deepEqual(await sleeps(), ["sleep 7650", "sleep 7651", "sleep 7652"]);
  for (const bystander of bystanders) void codeOf(bystander).catch(() => undefined);
});

test("a command gets exactly the container's environment", async ({ signal }) => {
  const own = tryRead(`/proc/${(await running()).find(([, line]) => line === "sleep 1000")?.[0]}/environ`);
  const { stdout } = await outputOf(exec(["env"], signal));
  assert.deepEqual(stdout.split("\n").filter(Boolean).sort(), own.split("\0").filter(Boolean).sort());
});

test("each exec has its own mark, and the container's shim has none afterwards", async ({ signal }) => {
  const giveUp = new AbortController();
  const marked = exec(sh("sleep 3456"), giveUp.signal);
  await waitFor(async () => (await processes()).includes("sleep 3456"), { what: "it runs", limitMs: 90_000 });
  const locks = async () => (await outputOf(exec(["grep", "locks", "/proc/self/limits"], signal))).stdout;
  const [first, second] = [await locks(), await locks()];
  assert.match(first, /Max file locks +\d{19} +unlimited/);
  assert.notEqual(first, second);
  await waitFor(async () => !(await shimLimits()).some((line) => /\d{19}/.test(line)), {
    what: "the shim has no mark",
    limitMs: 90_000,
  });
  giveUp.abort();
  await rejectsWith("ABORTED", marked.exitCode);
});

/** Returns the limits on locks of the container's parent process. */
async function shimLimits(): Promise<readonly string[]> {
  const [[pid] = [0]] = await running();
  const parent = /^PPid:\s+(\d+)/m.exec(tryRead(`/proc/${pid}/status`))?.[1];
  const limits = tryRead(`/proc/${parent}/limits`);
  assert.match(limits, /Max file locks/);
  return limits.split("\n").filter((line) => line.startsWith("Max file locks"));
}

test("a container keeps its own limit on file locks, and its commands run concurrently", async ({
  signal,
}) => {
  const tuning = { ulimits: [{ name: "locks", soft: 10, hard: 20 }] };
  const limited = await it.runtime.run({ ...it.spec(["sleep", "1000"]), tuning }, signal);
  const leave = new AbortController();
  const long = it.runtime.exec(limited.id, { ...PLAIN, command: ["sleep", "500"] }, leave.signal);
  const command = ["grep", "Max file locks", "/proc/self/limits"];
  const { stdout } = await outputOf(it.runtime.exec(limited.id, { ...PLAIN, command }, signal));
  assert.match(stdout, /^Max file locks +10 +20 /);
  leave.abort();
  await long.exitCode.catch(() => {});
  await it.runtime.remove([limited.id], signal);
});

test("cancelling at once, or during the start, leaves nothing behind", async ({ signal }) => {
  const calls = [0, 20, 40, 60, 80, 100].map(async (delayMs) => {
    const running = exec(sh("exec sleep 777"), AbortSignal.any([signal, AbortSignal.timeout(delayMs)]));
    await rejectsWith("ABORTED", running.exitCode);
  });
  await Promise.all(calls);
  await waitFor(async () => !(await processes()).some((line) => line === "sleep 777"), {
    what: "all are gone",
    limitMs: 90_000,
  });
});

test("a slow reader slows the command, and gets every byte", async ({ signal }) => {
  const running = exec(sh("head -c 20000000 /dev/zero | tr '\\0' x"), signal);
  const reader = running.output[Symbol.asyncIterator]();
  const first = await reader.next();
  let written = -1;
  const stalled = async () => {
    const before = written;
    written = await writtenBy("tr");
    return written === before;
  };
  await waitFor(stalled, { what: "the command waits", limitMs: 90_000, everyMs: 200 });
  assert.ok(written < 2_000_000, `${written} bytes are on their way`);
  let bytes = first.value?.data.length ?? 0;
  for (let next = await reader.next(); !next.done; next = await reader.next())
    bytes += next.value.data.length;
  assert.equal(bytes, 20_000_000);
  assert.equal(await running.exitCode, 0);
});

test("a reader that stops early doesn't block the command", async ({ signal }) => {
  const running = exec(sh("head -c 5000000 /dev/zero; exit 6"), signal);
  for await (const _ of running.output) break;
  assert.equal(await running.exitCode, 6);
});

test("passes input of any size and content; writing after the end fails", async ({ signal }) => {
  const input = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => (i * 7) % 256));
  const running = exec(["cat"], signal, { stdin: true });
  const writing = running.write(input).then(() => running.endInput());
  const chunks: Uint8Array[] = [];
  for await (const { data } of running.output) chunks.push(data);
  await writing;
  assert.equal(Buffer.concat(chunks).equals(input), true);
  assert.equal(await running.exitCode, 0);
  await assert.rejects(running.write(Buffer.from("late")));
});

test("a terminal has a size that can change, input, and no output of nerdctl", async ({ signal }) => {
  const options = {
    command: sh("stty size; read x; stty size; echo got $x $TERM; exit 9"),
    stdin: true,
    tty: true,
    columns: 100,
    rows: 30,
  };
  const running = it.runtime.exec(id, options, signal);
  let screen = "";
  const reading = (async () => {
    for await (const { stream, data } of running.output) {
      assert.equal(stream, "stdout");
      screen += Buffer.from(data).toString();
    }
  })();
  await waitFor(() => screen.includes("30 100"), { what: "the first size", limitMs: 90_000 });
  running.resize(120, 40);
  running.resize(0, 0);
  // The new size reaches the container through two processes, so the test polls for it.
  const sizes = await waitFor(
    async () => {
      const { stdout } = await outputOf(exec(sh("for t in /dev/pts/[0-9]*; do stty size <$t; done"), signal));
      return stdout.includes("40 120") ? stdout : undefined;
    },
    { what: "the new size", limitMs: 90_000 },
  );
  assert.ok(sizes);
  await running.write(Buffer.from("hello\r"));
  await reading;
  assert.equal(await running.exitCode, 9);
  assert.match(screen, /40 120\r\ngot hello xterm-256color\r\n$/);
  assert.equal(screen.includes("fatal"), false);
});

test("cancelling an exec with a terminal kills its processes", async ({ signal }) => {
  const giveUp = new AbortController();
  const running = exec(sh("trap '' HUP TERM; sleep 555"), AbortSignal.any([signal, giveUp.signal]), {
    tty: true,
    stdin: true,
  });
  await waitFor(async () => (await processes()).includes("sleep 555"), { what: "it runs", limitMs: 90_000 });
  giveUp.abort();
  await rejectsWith("ABORTED", running.exitCode);
  assert.equal((await processes()).includes("sleep 555"), false);
});

test("rejects an exec in a stopped or unknown container", async ({ signal }) => {
  const { id: other } = await it.runtime.run(it.spec(["sleep", "1000"]), signal);
  await it.runtime.stop(other, 0, signal);
  for (const gone of [other, "f".repeat(64)]) {
    for (const tty of [false, true]) {
      const running = it.runtime.exec(gone, { ...PLAIN, tty, command: ["true"] }, signal);
      assert.deepEqual(await outputOf(running), { stdout: "", stderr: "" });
      await rejectsWith("NOT_FOUND", running.exitCode);
    }
  }
});
