import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync, statSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { until } from "../../test/until.ts";
import { OPEN_STDIN, STDIN_HOLDER } from "../runtime/nerdctl/helper-programs.ts";
import { inputOpener } from "./container-input.ts";
import type { FrameWriter } from "./frame-writer.ts";
import { type AttachOptions, type AttachSources, serveAttach } from "./serve-attach.ts";
import type { InputConsumer } from "./session.ts";

const { signal } = new AbortController();

interface Attaching {
  readonly input?: "pipe" | "terminal" | undefined;
  readonly options?: AttachOptions | undefined;
  readonly exitCode?: number | undefined;
  /** The reason why the input can't be opened. */
  readonly refusal?: string | undefined;
}

async function attached({ input, options = { stdin: true }, exitCode = 0, refusal }: Attaching) {
  const written: string[] = [];
  const taken: string[] = [];
  let consumer: InputConsumer = {};
  const writer: Pick<FrameWriter, "data"> = {
    data: async (name, data) => void written.push(`${name} ${Buffer.from(data)}`),
  };
  const sources: AttachSources = {
    nowMs: () => 5_010,
    exitCodeOf: (podUid, { container, attempt }) =>
      podUid === "p1" && container === "web" && attempt === 1 && exitCode >= 0 ? exitCode : undefined,
    readLog: async function* (_of, { follow, sinceMs }) {
      await consumer.data?.(Buffer.from("ping"));
      consumer.resize?.(90, 30);
      await consumer.closed?.();
      yield Buffer.from(`follows ${follow} since ${sinceMs}`);
    },
    openInput: async ({ id, kind, ends }) => {
      if (refusal !== undefined) throw new Error(refusal);
      taken.push(`open ${id} ${kind} ${ends}`);
      return {
        write: async (data) => void taken.push(Buffer.from(data).toString()),
        resize: (columns, rows) => void taken.push(`${columns}x${rows}`),
        end: () => void taken.push("end"),
        close: () => void taken.push("close"),
      };
    },
  };
  const end = await serveAttach(
    {
      ...{ podUid: "p1", signal, writer: writer as FrameWriter },
      found: { container: "web", attempt: 1, id: "c1", ...(input && { input }) },
      readInput: (it) => {
        consumer = it;
      },
    },
    options,
    sources,
  );
  return { written, taken, end };
}

test("passes input and sizes on, and follows the output until the container ends", async () => {
  const options = { stdin: true, size: { columns: 80, rows: 24 } };
  const { written, taken, end } = await attached({ input: "terminal", options });
  assert.deepEqual(written, ["stdout follows true since 5000"]);
  assert.deepEqual(taken, ["open c1 terminal false", "80x24", "ping", "90x30", "close", "close"]);
  assert.deepEqual(end, { exitCode: 0, error: "" });
});

test("ends the container's input with the client's only on request", async () => {
  const { taken } = await attached({ input: "pipe", options: { stdin: true, endInput: true } });
  assert.deepEqual(taken, ["open c1 pipe true", "ping", "90x30", "end", "close"]);
  const ended = { input: "pipe", options: { stdin: true, endInput: true }, refusal: "it was ended" } as const;
  await assert.rejects(attached(ended), /it was ended/);
});

test("ends with the container's exit code, and fails if it is unknown", async () => {
  assert.deepEqual((await attached({ input: "pipe", exitCode: 7 })).end, { exitCode: 7, error: "" });
  await assert.rejects(attached({ input: "pipe", exitCode: -1 }), /its exit code is not known/);
});

for (const [what, attaching, note] of [
  ["has no open standard input", {}, /^stderr only the output of container web is followed: it has no open/],
  [
    "can't be written to",
    { input: "pipe", refusal: "it was replaced" },
    /^stderr only .*: it was replaced\n$/,
  ],
  ["is followed without input", { input: "pipe", options: { stdin: false } }, undefined],
] as const) {
  test(`accepts no input if the container ${what}`, async () => {
    const { written, taken } = await attached(attaching);
    if (note !== undefined) assert.match(written.shift() ?? "", note);
    assert.deepEqual([written, taken], [["stdout follows true since 5000"], []]);
  });
}

const noTerminals = () => Promise.reject(new Error("no terminal"));
const PIPE = { id: "c1", kind: "pipe", ends: false } as const;
/** Opens standard input as agents of earlier versions did, with both ends in the program. */
const BOTH_ENDS = 'd=$(mktemp -d); mkfifo "$d/in"; exec 0<>"$d/in"; ';

async function start(t: TestContext, script: string) {
  const child = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => void child.kill("SIGKILL"));
  const opener = inputOpener(async () => child.pid, noTerminals);
  return { child, open: (ends = false) => opener({ ...PIPE, ends }, signal) };
}

/** Starts a script whose standard input the agent's own runtime has opened. */
async function startReader(t: TestContext, script: string) {
  const { child, open } = await start(t, `${OPEN_STDIN}\n${script}`);
  await until("the pipe has no name", () => /deleted/.test(linkOf(child.pid)));
  const { dev, ino } = statSync(`/proc/${child.pid}/fd/0`);
  const holders = () =>
    readdirSync("/proc").filter((name) => {
      try {
        const held = statSync(`/proc/${name}/fd/${STDIN_HOLDER.descriptor}`);
        return held.dev === dev && held.ino === ino && /\bflock$/.test(readlinkSync(`/proc/${name}/exe`));
      } catch {
        return false;
      }
    }).length;
  await until("the pipe is held", () => holders() === 1);
  return { child, open, holders };
}

test("writes only to a pipe that no other program reads", async (t) => {
  const { child, open } = await startReader(t, "exec cat");
  const input = await open();
  await input.write(Buffer.from("hello"));
  assert.equal(String((await once(child.stdout, "data"))[0]), "hello");
  input.close();
  // A named pipe may belong to another program.
  const named = await start(t, `${BOTH_ENDS} exec sleep 100`);
  await until("the pipe is open", () => /\/in$/.test(linkOf(named.child.pid)));
  await assert.rejects(named.open(), /replaced its standard input/);
  const file = await start(t, "exec sleep 100");
  await assert.rejects(file.open(), /replaced its standard input/);
});

test("ends the program's input once no session has it open, and accepts none afterwards", async (t) => {
  const { child, open, holders } = await startReader(t, "cat; echo end; exec sleep 100");
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
  });
  const [ending, other] = [await open(true), await open()];
  await ending.write(Buffer.from("one "));
  ending.end();
  await until("the input is not held any more", () => holders() === 0);
  await other.write(Buffer.from("two "));
  other.close();
  await until("the program has its end", () => output === "one two end\n");
  await assert.rejects(open(), /ended by an earlier session/);
});

test("holds the pipe only as long as the program reads it", async (t) => {
  const { child, holders } = await startReader(t, "exec cat");
  child.kill("SIGKILL");
  await until("the input is not held any more", () => holders() === 0);
});

test("can't end the input of a program that holds both ends", async (t) => {
  const { child, open } = await start(t, `${BOTH_ENDS} rm -r "$d"; exec cat`);
  await until("the pipe has no name", () => /deleted/.test(linkOf(child.pid)));
  await assert.rejects(open(true), /started by an older agent/);
  const input = await open();
  await input.write(Buffer.from("hello"));
  assert.equal(String((await once(child.stdout, "data"))[0]), "hello");
  input.close();
});

test("closes a pipe whose process may no longer belong to the container", async (t) => {
  const { child } = await startReader(t, "exec cat");
  for (const later of [undefined, 1]) {
    const pids = [child.pid, later];
    const opener = inputOpener(async () => pids.shift(), noTerminals);
    await assert.rejects(opener(PIPE, signal), /the container has ended/);
    assert.equal(pids.length, 0);
  }
  // A pipe that is open in another process would keep the program from ending.
  const link = linkOf(child.pid);
  await until("no descriptor is left", () => !ownLinks().includes(link));
});

/** Returns the link targets of this process's descriptors. */
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
