import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Clock, systemClock } from "../clock.ts";
import { LogFile } from "./log-file.ts";
import { LogRotator, type LogRotatorOptions } from "./log-rotator.ts";

function given(t: TestContext, options: Partial<LogRotatorOptions> & { dir?: string } = {}) {
  const dir = mkdtempSync(join(options.dir ?? tmpdir(), "forage-keeper-"));
  const errors: unknown[] = [];
  const rotator = new LogRotator({
    clock: systemClock,
    onError: (_, error) => errors.push(error),
    ...options,
  });
  /** Stop the test's writers and readers before its directory is removed. */
  const stops: (() => unknown)[] = [];
  t.after(async () => {
    for (const stop of stops) await stop();
    await rotator.close();
    rmSync(dir, { recursive: true });
    assert.deepEqual(errors, []);
  });
  return { path: join(dir, "a.log"), rotator, stops };
}

const lines = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => `${from + i}\n`).join("");

/** Asserts that the lines are consecutive numbers, and returns the last one. */
function assertConsecutive(text: string): number {
  const numbers = text.trimEnd().split("\n").map(Number);
  for (let i = 1; i < numbers.length; i += 1)
    assert.equal(numbers[i], (numbers[i - 1] ?? 0) + 1, `line ${i}`);
  return numbers.at(-1) ?? -1;
}

async function readAll(source: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** Starts a process that appends numbered lines like a shim, at full speed or on demand. */
function startWriter(
  { path, stops }: Pick<ReturnType<typeof given>, "path" | "stops">,
  count: number,
  batch: number,
) {
  const script = `const fs = require("node:fs");
    const fd = fs.openSync(process.argv[1], "a");
    let n = 0;
    const write = () => {
      let text = "";
      for (const end = Math.min(${count}, n + ${batch}); n < end; n++) text += n + "\\n";
      fs.writeSync(fd, text);
      return n < ${count};
    };
    if (process.argv[2] === "free") { while (write()); }
    else process.stdin.on("data", () => { if (!write()) process.exit(); });`;
  return (mode: "free" | "notified") => {
    const child = spawn(process.execPath, ["-e", script, path, mode], {
      stdio: [mode === "free" ? "ignore" : "pipe", "ignore", "inherit"],
    });
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    // The writer exits after its last line, so a later request may find the pipe closed.
    child.stdin?.on("error", () => {});
    stops.push(() => {
      child.kill("SIGKILL");
      return ended;
    });
    return { ended, more: () => void child.stdin?.write("x") };
  };
}

for (const [where, dir] of [
  ["here", tmpdir()],
  ["on tmpfs", "/dev/shm"],
] as const) {
  test(`a writer at full speed loses no line while its log is trimmed, ${where}`, async (t) => {
    const { path, stops } = given(t, { dir });
    const file = new LogFile(path);
    const count = 3_000_000;
    writeFileSync(path, "");
    const writer = startWriter({ path, stops }, count, 50)("free");
    let ended = false;
    void writer.ended.then(() => {
      ended = true;
    });
    const modes: (string | undefined)[] = [];
    let last = -1;
    for (let more = true; more; ) {
      more = !ended;
      modes.push(await file.trim(300_000));
      // One read returns the rotated part and the rest.
      const text = (await file.read(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER / 2)).data.toString();
      last = assertConsecutive(text.slice(0, text.lastIndexOf("\n") + 1));
    }
    assert.equal(last, count - 1);
    // The number of trims depends on the load of the machine.
    assert.ok(modes.some((mode) => mode !== undefined) && !modes.includes("truncate"), `${modes}`);
  });
}

test("a log is kept within bounds", async (t) => {
  const trimmed: string[] = [];
  const { path, rotator, stops } = given(t, { maxBytes: 300_000, onTrim: (it) => trimmed.push(it) });
  writeFileSync(path, "");
  rotator.keep(path);
  const writer = startWriter({ path, stops }, 3_000_000, 50)("free");
  await writer.ended;
  const bounded = () => trimmed.length > 0 && statSync(path).blocks * 512 < 350_000;
  await waitUntil(bounded);
  assert.ok(statSync(`${path}.1`).size <= 300_000);
});

test("a reader of the whole log gets every line even if the log is due for trimming meanwhile", async (t) => {
  const { path, rotator } = given(t, { maxBytes: 200_000 });
  writeFileSync(path, "");
  rotator.keep(path);
  let count = 0;
  const append = (bytes: number) => {
    const from = count;
    for (let size = 0; size < bytes; count += 1) size += `${count}\n`.length;
    appendFileSync(path, lines(from, count - from));
  };
  append(201_000);
  await rotator.check();
  assert.ok(statSync(`${path}.1`).size > 190_000);
  append(180_000);
  const read = rotator.tail(path, { follow: false, signal: new AbortController().signal });
  const first = (await read.next()).value ?? new Uint8Array();
  append(100_000);
  await rotator.check();
  const text = Buffer.concat([first, Buffer.from(await readAll(read))]).toString();
  assert.equal(assertConsecutive(text), count - 1);
  await waitUntil(() => statSync(path).blocks * 512 < 10_000);
});

test("a reader that starts just before a trim gets the text without a gap", async (t) => {
  // With each turn of the event loop the check is in another step when the reader starts.
  for (let turns = 0; turns < 12; turns += 1) {
    const { path, rotator } = given(t, { maxBytes: 500_000, checkMs: 60_000 });
    writeFileSync(path, lines(0, 100_000));
    rotator.keep(path);
    await rotator.check();
    appendFileSync(path, lines(100_000, 150_000));
    const checked = rotator.check();
    for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
    const read = readAll(rotator.tail(path, { follow: false, signal: AbortSignal.timeout(10_000) }));
    assert.equal(assertConsecutive(await read), 249_999, `after ${turns} turns`);
    await checked;
  }
});

test("a stalled reader delays trimming only until the log has twice its limit", async (t) => {
  const { path, rotator, stops } = given(t, { maxBytes: 200_000 });
  writeFileSync(path, lines(0, 20_000));
  rotator.keep(path);
  const read = rotator.tail(path, { follow: false, signal: new AbortController().signal });
  stops.push(() => read.return());
  await read.next();
  appendFileSync(path, lines(20_000, 60_000));
  await rotator.check();
  assert.ok(statSync(path).blocks * 512 < 10_000);
});

test("a log that is only read is released with its last reader", async (t) => {
  const grown: number[] = [];
  const { path, rotator } = given(t, { onGrown: (bytes) => grown.push(bytes) });
  writeFileSync(path, lines(0, 10));
  assert.equal(await rotator.lastLines(path, 1, 100), "9\n");
  appendFileSync(path, lines(10, 10));
  await rotator.check();
  assert.deepEqual(grown, [], "no file is checked after close");
});

async function waitUntil(holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 90_000; !holds(); ) {
    assert.ok(performance.now() < end, "waited in vain");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("a follower gets every line across rotations, and ends with its writer", async (t) => {
  const { path, rotator, stops } = given(t, { maxBytes: 100_000 });
  writeFileSync(path, "");
  rotator.keep(path);
  const count = 100_000;
  const ended = new AbortController();
  const writer = startWriter({ path, stops }, count, 1_000)("notified");
  void writer.ended.then(() => ended.abort());
  writer.more();
  let seen = 0;
  let rest = "";
  for await (const piece of rotator.tail(path, {
    follow: true,
    signal: new AbortController().signal,
    ended: ended.signal,
  })) {
    const text = rest + Buffer.from(piece).toString();
    const end = text.lastIndexOf("\n") + 1;
    rest = text.slice(end);
    for (const line of text.slice(0, end).split("\n").filter(Boolean)) {
      assert.equal(Number(line), seen);
      seen += 1;
      if (seen % 1_000 === 0) {
        await rotator.check();
        writer.more();
      }
    }
  }
  assert.equal(seen, count);
  assert.ok(existsSync(`${path}.1`));
});

test("a tail begins with the last lines, with all, or with new ones", async (t) => {
  const { path, rotator, stops } = given(t);
  writeFileSync(path, lines(0, 100));
  const { signal } = new AbortController();
  assert.equal(await readAll(rotator.tail(path, { follow: false, signal })), lines(0, 100));
  assert.equal(await readAll(rotator.tail(path, { follow: false, signal, lines: 3 })), lines(97, 3));
  assert.equal(await readAll(rotator.tail(path, { follow: false, signal, lines: 0 })), "");
  const following = rotator.tail(path, { follow: true, signal, lines: 0 });
  // The starting position is determined shortly after the call; earlier lines are left out.
  const writing = setInterval(() => appendFileSync(path, "new\n"), 20);
  stops.push(() => clearInterval(writing));
  const first = Buffer.from((await following.next()).value ?? []).toString();
  clearInterval(writing);
  assert.match(first, /^(new\n)+$/);
  await following.return();
});

test("a follower waits for a log that doesn't exist yet, and stops at once when its signal aborts", async (t) => {
  const { path, rotator } = given(t);
  const stop = new AbortController();
  const following = rotator.tail(path, { follow: true, signal: stop.signal });
  const first = following.next();
  setImmediate(() => writeFileSync(path, "hello\n"));
  assert.equal(Buffer.from((await first).value ?? []).toString(), "hello\n");
  const second = following.next();
  stop.abort();
  assert.equal((await second).done, true);
});

test("a quiet log causes no work, and an active one is checked until it is quiet", async (t) => {
  const timers = new Set<{ readonly delayMs: number; readonly run: () => void }>();
  const clock: Clock = {
    ...systemClock,
    schedule(delayMs, run) {
      const timer = { delayMs, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  const { path, rotator } = given(t, { clock });
  const fire = () => {
    for (const timer of [...timers]) {
      timers.delete(timer);
      timer.run();
    }
  };
  for (const name of [path, `${path}b`, `${path}c`]) {
    writeFileSync(name, "");
    rotator.keep(name);
  }
  await rotator.check();
  assert.equal(timers.size, 0, "all are watched");
  appendFileSync(path, "hello\n");
  await waitUntil(() => [...timers].some(({ delayMs }) => delayMs <= 400));
  for (let rounds = 0; timers.size > 0; rounds += 1) {
    assert.ok(rounds < 20, "it is never quiet");
    fire();
    await rotator.check();
  }
  for (const name of [path, `${path}b`, `${path}c`]) await rotator.remove(name);
  rotator.keep(`${path}/none`);
  await rotator.check();
  assert.ok(timers.size > 0, "files that can't be watched are polled");
  await rotator.remove(`${path}/none`);
  assert.equal(timers.size, 0);
});

test("shows when lines arrived and filters by time, also after a restart", async (t) => {
  const { path, rotator } = given(t);
  const { signal } = new AbortController();
  writeFileSync(path, "");
  rotator.keep(path);
  const written: number[] = [];
  const write = async (text: string) => {
    const last = written.at(-1) ?? 0;
    // Wait for a new millisecond by the kernel's clock for files.
    await waitUntil(() => Date.now() > last + 50);
    appendFileSync(path, text);
    written.push(statSync(path).mtimeMs);
    await rotator.check();
  };
  await write("one\n");
  await write("two\ntwo and");
  await write(" a half\nthree\n");
  const lines = async (options: { sinceMs?: number; lines?: number }, from = rotator) =>
    (await readAll(from.tail(path, { follow: false, signal, timestamps: true, ...options }))).split("\n");
  const iso = written.map((ms) => new Date(Math.floor(ms)).toISOString());
  const all = [`${iso[0]} one`, `${iso[1]} two`, `${iso[1]} two and a half`, `${iso[2]} three`, ""];
  const [first = 0, second = 0, third = 0] = written.map(Math.floor);
  assert.deepEqual(await lines({}), all);
  assert.deepEqual(await lines({ sinceMs: first }), all);
  assert.deepEqual(await lines({ sinceMs: first + 1 }), all.slice(1));
  assert.deepEqual(await lines({ sinceMs: second + 1 }), all.slice(3));
  assert.deepEqual(await lines({ sinceMs: third + 1 }), [""]);
  assert.deepEqual(await lines({ sinceMs: first + 1, lines: 2 }), all.slice(2));
  await rotator.release(path);
  const next = new LogRotator({ clock: systemClock });
  assert.deepEqual(await lines({ sinceMs: first + 1 }, next), all.slice(1));
  const plain = next.tail(path, { follow: false, signal, sinceMs: second + 1 });
  assert.equal(await readAll(plain), "three\n");
});

test("lines that arrived without an agent show an interval", async (t) => {
  const { path, rotator, stops } = given(t);
  const { signal } = new AbortController();
  writeFileSync(path, "watched\n");
  rotator.keep(path);
  await rotator.close();
  const watchedMs = Math.floor(statSync(path).mtimeMs);
  appendFileSync(path, "alone 1\nalone 2\n");
  const laterMs = watchedMs + 3_600_000;
  utimesSync(path, laterMs / 1_000, laterMs / 1_000);
  const next = new LogRotator({ clock: systemClock });
  stops.push(() => next.close());
  next.keep(path);
  await next.check();
  const text = await readAll(next.tail(path, { follow: false, signal, timestamps: true }));
  const interval = `${new Date(watchedMs).toISOString()}/${new Date(laterMs).toISOString()}`;
  assert.deepEqual(text.split("\n").slice(1, 3), [`${interval} alone 1`, `${interval} alone 2`]);
  // These lines may be recent enough, so they are included.
  const since = next.tail(path, { follow: false, signal, sinceMs: laterMs });
  assert.equal(await readAll(since), "alone 1\nalone 2\n");
});

test("a follower with timestamps gets each line with its time, across rotations", async (t) => {
  const { path, rotator, stops } = given(t, { maxBytes: 100_000 });
  writeFileSync(path, "");
  rotator.keep(path);
  const count = 30_000;
  const ended = new AbortController();
  const writer = startWriter({ path, stops }, count, 1_000)("notified");
  void writer.ended.then(() => ended.abort());
  const beganMs = Date.now() - 1_000;
  writer.more();
  const tail = { follow: true, timestamps: true, signal: new AbortController().signal, ended: ended.signal };
  let seen = 0;
  let rest = "";
  for await (const piece of rotator.tail(path, tail)) {
    const text = rest + Buffer.from(piece).toString();
    const end = text.lastIndexOf("\n") + 1;
    rest = text.slice(end);
    for (const line of text.slice(0, end).split("\n").filter(Boolean)) {
      const [stamp = "", number] = line.split(" ");
      assert.equal(Number(number), seen);
      assert.ok(Date.parse(stamp) >= beganMs && Date.parse(stamp) <= Date.now(), line);
      seen += 1;
      if (seen % 1_000 !== 0) continue;
      await rotator.check();
      writer.more();
    }
  }
  assert.equal(seen, count);
});

test("accepts a log that vanishes, and reports an unreadable one", async (t) => {
  const errors: string[] = [];
  const { path, rotator } = given(t, { onError: (at) => errors.push(at) });
  rotator.keep(path);
  await rotator.check();
  assert.deepEqual(errors, []);
  rotator.keep(`${path}/impossible`);
  writeFileSync(path, "");
  await rotator.check();
  assert.deepEqual([...new Set(errors)], [`${path}/impossible`]);
});
