import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { test } from "node:test";
import { until } from "../../test/until.ts";
import { inputOpener } from "./container-input.ts";
import type { FrameWriter } from "./frame-writer.ts";
import { type AttachSources, serveAttach } from "./serve-attach.ts";
import type { InputTaker } from "./session.ts";

const { signal } = new AbortController();

async function attached(input: "pipe" | "terminal" | undefined, stdin: boolean, exitCode = 0) {
  const written: string[] = [];
  const taken: string[] = [];
  let taker: InputTaker = {};
  const writer: Pick<FrameWriter, "data"> = {
    data: async (name, data) => void written.push(`${name} ${Buffer.from(data)}`),
  };
  const sources: AttachSources = {
    nowMs: () => 5_010,
    exitCodeOf: (podUid, { container, attempt }) =>
      podUid === "p1" && container === "web" && attempt === 1 && exitCode >= 0 ? exitCode : undefined,
    readLog: async function* (_of, { follow, sinceMs }) {
      await taker.data?.(Buffer.from("ping"));
      yield Buffer.from(`follows ${follow} since ${sinceMs}`);
    },
    openInput: async () => ({
      write: async (data) => void taken.push(Buffer.from(data).toString()),
      close: () => void taken.push("closed"),
    }),
  };
  const end = await serveAttach(
    {
      ...{ podUid: "p1", signal, writer: writer as FrameWriter },
      found: { container: "web", attempt: 1, id: "c1", ...(input && { input }) },
      readInput: (it) => {
        taker = it;
      },
    },
    { stdin },
    sources,
  );
  return { written, taken, end };
}

test("passes input on, and follows the output until the container ends", async () => {
  const { written, taken, end } = await attached("pipe", true);
  assert.deepEqual(written, ["stdout follows true since 5000"]);
  assert.deepEqual(taken, ["ping", "closed"]);
  assert.deepEqual(end, { exitCode: 0, error: "" });
});

test("ends with the container's exit code, and fails if that is not known", async () => {
  assert.deepEqual((await attached("pipe", true, 7)).end, { exitCode: 7, error: "" });
  await assert.rejects(attached("pipe", true, -1), /its exit code is not known/);
});

for (const [what, input, stdin, note] of [
  ["has no open standard input", undefined, true, /^stderr container web has no open standard input/],
  ["has a terminal", "terminal", true, /^stderr container web has a terminal/],
  ["is followed without input", "pipe", false, undefined],
] as const) {
  test(`takes no input where the container ${what}`, async () => {
    const { written, taken } = await attached(input, stdin);
    if (note !== undefined) assert.match(written.shift() ?? "", note);
    assert.deepEqual([written, taken], [["stdout follows true since 5000"], []]);
  });
}

const OPEN = 'd=$(mktemp -d); mkfifo "$d/in"; exec 0<>"$d/in"; ';

test("writes to a pipe that only the program holds, and to nothing else", async (t) => {
  const start = async (script: string) => {
    const child = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => void child.kill("SIGKILL"));
    const open = inputOpener(async () => child.pid);
    return { child, open: () => open("c1", signal) };
  };
  const { child, open } = await start(`${OPEN} rm -r "$d"; exec cat`);
  await until("the pipe has no name", () => /deleted/.test(linkOf(child.pid)));
  const input = await open();
  await input.write(Buffer.from("hello"));
  assert.equal(String((await once(child.stdout, "data"))[0]), "hello");
  input.close();
  // A pipe of the host's file system may be another program's.
  const named = await start(`${OPEN} exec sleep 100`);
  await until("the pipe is open", () => /\/in$/.test(linkOf(named.child.pid)));
  await assert.rejects(named.open(), /replaced its standard input/);
  const file = await start("exec sleep 100");
  await assert.rejects(file.open(), /replaced its standard input/);
});

test("closes a pipe whose process may no longer be the container's", async (t) => {
  const child = spawn("sh", ["-c", `${OPEN} rm -r "$d"; exec cat`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => void child.kill("SIGKILL"));
  await until("the pipe has no name", () => /deleted/.test(linkOf(child.pid)));
  for (const later of [undefined, 1]) {
    const pids = [child.pid, later];
    await assert.rejects(inputOpener(async () => pids.shift())("c1", signal), /the container has ended/);
    assert.equal(pids.length, 0);
  }
  // A pipe that is open at another process would keep the program from its end.
  const link = linkOf(child.pid);
  await until("no descriptor is left", () => !ownLinks().includes(link));
});

/** Returns what the descriptors of this process lead to. */
function ownLinks(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

function linkOf(pid: number | undefined): string {
  return readlinkSync(`/proc/${pid}/fd/0`);
}
