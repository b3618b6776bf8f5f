import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  linkPipes,
  linkRuntime,
  needsOwnRuntime,
  needsStreamLogger,
  prepareHelpers,
  restoreHelpers,
} from "./helper-programs.ts";

function given(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-helpers-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const streamPipes = { stdout: join(dir, "a b'1"), stderr: join(dir, "2") };
  execFileSync("mkfifo", [streamPipes.stdout, streamPipes.stderr]);
  const home = join(dir, "home");
  mkdirSync(home);
  // Prints its arguments and how its streams were opened.
  const ociRuntime = join(dir, "it's runc");
  const script = `#!/bin/sh\nfds=$(cd /proc/$$/fd && readlink 0 1 2); printf '%s\\n' "$*" "$fds" > '${dir}/seen'\n`;
  writeFileSync(ociRuntime, script, { mode: 0o755 });
  const programs = join(dir, "programs");
  const seen = () => readFileSync(join(dir, "seen"), "utf8").trimEnd().split("\n");
  return { programs, home, ociRuntime, streamPipes, seen };
}

test("creating a container opens both ends of its pipes, so that nothing blocks without a reader", async (t) => {
  const { programs, home, ociRuntime, streamPipes, seen } = given(t);
  const { ownRuntime } = await prepareHelpers(programs, { ociRuntime, streamPipes });
  const runtime = await linkRuntime(home, ownRuntime, streamPipes);
  const args = ["--root", "/x y", "create", "--bundle", "/b", "id"];
  const { status } = spawnSync(runtime, args, { timeout: 60_000, stdio: ["ignore", "pipe", "pipe"] });
  assert.equal(status, 0);
  assert.deepEqual(seen(), [args.join(" "), "/dev/null", streamPipes.stdout, streamPipes.stderr]);
});

test("other commands of a runtime keep their own streams", async (t) => {
  const { programs, home, ociRuntime, streamPipes, seen } = given(t);
  const { ownRuntime } = await prepareHelpers(programs, { ociRuntime, streamPipes });
  const runtime = await linkRuntime(home, ownRuntime, streamPipes);
  for (const command of ["start", "exec", "kill", "delete", "state"]) {
    spawnSync(runtime, [command, "id"], { timeout: 60_000, stdio: ["ignore", "pipe", "pipe"] });
    const [words, , out, err] = seen();
    assert.equal(words, `${command} id`);
    assert.match(`${out} ${err}`, /^(pipe|socket):\S+ (pipe|socket):\S+$/);
  }
});

test("a container whose pipes are missing fails to start", async (t) => {
  const { programs, home, ociRuntime, streamPipes } = given(t);
  const { ownRuntime } = await prepareHelpers(programs, { ociRuntime, streamPipes });
  const runtime = await linkRuntime(home, ownRuntime, { ...streamPipes, stdout: "/nowhere/1" });
  assert.notEqual(spawnSync(runtime, ["create", "id"], { timeout: 60_000 }).status, 0);
});

test("each kind has its own program, created once, and a shim can't be wrapped", async (t) => {
  const { programs, ociRuntime, streamPipes } = given(t);
  await prepareHelpers(programs, { ociRuntime, streamPipes });
  await prepareHelpers(programs, { ociRuntime, streamPipes });
  await prepareHelpers(programs, { ociRuntime, streamPipes, stdin: true });
  await prepareHelpers(programs, { ociRuntime, stdin: true });
  await prepareHelpers(programs, { ociRuntime });
  assert.equal(readdirSync(programs).length, 3);
  const shim = { ociRuntime: "io.containerd.kata.v2" };
  await assert.rejects(
    prepareHelpers(programs, { ...shim, stdin: true }),
    /stdin without tty can't be kept open/,
  );
  assert.equal(needsOwnRuntime({ tty: true, stdin: true, streamPipes }), false);
  assert.equal(needsOwnRuntime({ streamPipes }), true);
});

test("the output of a shim or terminal passes through a program, also without a reader", async (t) => {
  const { programs, home, streamPipes } = given(t);
  const shim = { ociRuntime: "io.containerd.kata.v2", streamPipes };
  assert.deepEqual([needsOwnRuntime(shim), needsStreamLogger(shim)], [false, true]);
  assert.deepEqual(
    [needsStreamLogger({ tty: true, streamPipes }), needsStreamLogger({ tty: true })],
    [true, false],
  );
  assert.equal(needsStreamLogger({ streamPipes }), false);
  const { streamLogger } = await prepareHelpers(programs, shim);
  await linkPipes(home, streamPipes);
  // Started as containerd does: with both streams, and with a pipe that is closed when the program is ready.
  const [out, err] = [join(home, "out"), join(home, "err")];
  writeFileSync(out, "of out\n");
  writeFileSync(err, "of err\n");
  const held = [streamPipes.stdout, streamPipes.stderr].map((path) => openSync(path, "r+"));
  const inputs = [out, err].map((path) => openSync(path, "r"));
  const { status } = spawnSync(streamLogger, ["dir", home], {
    stdio: ["ignore", "ignore", "ignore", ...inputs, "pipe"],
    timeout: 60_000,
  });
  assert.equal(status, 0);
  const read = held.map((fd) => {
    const bytes = Buffer.alloc(100);
    return bytes.toString("utf8", 0, readSync(fd, bytes));
  });
  assert.deepEqual(read, ["of out\n", "of err\n"]);
  for (const fd of [...held, ...inputs]) closeSync(fd);
});

test("restores missing and damaged programs through which running containers were started", async (t) => {
  const { programs, ociRuntime, streamPipes } = given(t);
  await prepareHelpers(programs, { ociRuntime, streamPipes });
  await prepareHelpers(programs, { ociRuntime, stdin: true });
  await prepareHelpers(programs, { streamPipes, stdin: true });
  await prepareHelpers(programs, { tty: true });
  const names = readdirSync(programs);
  assert.equal(names.length, 4);
  await restoreHelpers(programs, [ociRuntime], () => assert.fail("nothing is damaged"));
  const sound = new Map(names.map((name) => [name, readFileSync(join(programs, name), "utf8")]));
  const damaged: string[] = [];
  const note = (path: string) => damaged.push(basename(path));
  for (const [name, text] of sound) {
    for (const content of [text.replace("exec", "exed"), "", undefined]) {
      const path = join(programs, name);
      if (content === undefined) rmSync(path);
      else writeFileSync(path, content);
      damaged.length = 0;
      await restoreHelpers(programs, [ociRuntime], note);
      assert.equal(readFileSync(path, "utf8"), text);
      assert.equal(statSync(path).mode & 0o777, 0o700);
      assert.deepEqual(damaged, content === undefined ? [] : [name]);
    }
  }
});

test("restores a program of an earlier version from its copy, and the copy from the program", async (t) => {
  const { programs } = given(t);
  mkdirSync(programs);
  const text = '#!/bin/sh\nexec runc "$@"\n';
  const name = `stdin-${createHash("sha256").update(text).digest("hex").slice(0, 12)}`;
  const path = join(programs, name);
  const copy = join(programs, "copies", name);
  writeFileSync(path, text, { mode: 0o700 });
  const damaged: string[] = [];
  const restore = () => restoreHelpers(programs, [], (file, ...why) => damaged.push([file, ...why].join()));
  await restore();
  assert.deepEqual([readFileSync(copy, "utf8"), damaged], [text, []]);

  for (const lost of [path, copy])
    for (const content of ["damaged", "", undefined]) {
      if (content === undefined) rmSync(lost);
      else writeFileSync(lost, content);
      damaged.length = 0;
      await restore();
      assert.deepEqual([readFileSync(path, "utf8"), readFileSync(copy, "utf8")], [text, text]);
      assert.equal(statSync(path).mode & 0o777, 0o700);
      const isQuiet = lost === copy && content === undefined;
      assert.equal(damaged.length, isQuiet ? 0 : 1, `${lost} ${content}: ${damaged}`);
      for (const note of damaged) assert.match(note, /it is written again$/);
    }
});

test("reports a damaged program of an earlier version, and leaves intact ones and other files unchanged", async (t) => {
  const { programs } = given(t);
  mkdirSync(programs);
  const sound = createHash("sha256").update("older").digest("hex").slice(0, 12);
  writeFileSync(join(programs, `stdin-${sound}`), "older");
  writeFileSync(join(programs, "streams-0123456789ab"), "damaged");
  writeFileSync(join(programs, "note.txt"), "an operator's");
  const damaged: string[] = [];
  await restoreHelpers(programs, [], (path) => damaged.push(basename(path)));
  assert.deepEqual(damaged, ["streams-0123456789ab"]);
  assert.equal(readFileSync(join(programs, `stdin-${sound}`), "utf8"), "older");
});
