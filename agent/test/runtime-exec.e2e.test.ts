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

/** Ids and command lines of all that runs in the container. */
async function running(): Promise<readonly (readonly [number, string])[]> {
  const { pid = 0 } = (await it.runtime.inspect(id, AbortSignal.timeout(10_000))) ?? {};
  const cgroup = findCgroup(pid);
  const pids = cgroup ? readProcesses(cgroup) : [];
  return pids.map((it) => [it, tryRead(`/proc/${it}/cmdline`).split("\0").join(" ").trim()]);
}

async function processes(): Promise<readonly string[]> {
  return (await running()).map(([, line]) => line);
}

/** Bytes that the program has written so far. */
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
    test(`exit code, ${tty ? "with" : "without"} a terminal: ${what}`, async ({ signal }) => {
      const running = exec(command, signal, { tty });
      const output = await outputOf(running);
      const errors = (tty ? output.stdout.replaceAll("\r\n", "\n") : "") + output.stderr;
      if (typeof stderr === "string") assert.equal(errors, stderr);
      else assert.match(errors, stderr);
      assert.equal(await running.exitCode, code);
    });
  }
}

test("giving up kills what runs inside, with all it started, and nothing else", async ({ signal }) => {
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

test("giving up at once, or as it starts, leaves nothing", async ({ signal }) => {
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

test("a reader that leaves doesn't hold the command up", async ({ signal }) => {
  const running = exec(sh("head -c 5000000 /dev/zero; exit 6"), signal);
  for await (const _ of running.output) break;
  assert.equal(await running.exitCode, 6);
});

test("input of any size and content comes through; writing after the end fails", async ({ signal }) => {
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

test("a terminal: its size, changes of it, input, and no words of nerdctl's", async ({ signal }) => {
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

test("giving up a terminal kills what runs in it", async ({ signal }) => {
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

test("a container that is stopped or unknown", async ({ signal }) => {
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
