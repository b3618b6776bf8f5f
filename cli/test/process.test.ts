import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import type { ExecRequest } from "@forage/proto/forage/operator/v1/operator";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { type IPty, spawn as spawnPty } from "@lydell/node-pty";
import { bundledProgram } from "../../hack/bundling/bundled-program.ts";
import { aPod, aResource, aRollout } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { anEvent, HELLO, rollout } from "./rollout.ts";

/** Runs the command as a process, to test signals, closed pipes and terminals. */
const main = await bundledProgram("forage");
let fake: FakeCoordinator;
const STARTED: (ChildProcess | IPty)[] = [];

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = { listPods: () => ({ kept: [], pods: [aPod()] }) };
});
afterEach(() => {
  for (const process of STARTED.splice(0)) process.kill("SIGKILL");
});

function environment(): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "",
    HOME: fake.dir,
    TERM: "xterm",
    FORAGE_CONFIG: "/dev/null",
    ...fake.env,
  };
}

interface Running {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<number | null>;
}

function start(argv: readonly string[]): Running {
  const child = spawn(process.execPath, [main, ...argv], { env: environment(), stdio: "pipe" });
  STARTED.push(child);
  const output = { stdout: "", stderr: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  // The process may close its input before the test has written everything.
  child.stdin?.on("error", () => {});
  return { child, output, ended: new Promise((resolve) => child.on("close", resolve)) };
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 90_000;
  while (!condition()) {
    assert.ok(performance.now() < deadline, `in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The time limit of a test. It keeps a command that never ends from delaying other tests. */
const LIMIT = { timeout: 180_000 };

describe("a process", LIMIT, () => {
  test("exits with 130 at SIGINT during a rollout, and prints how to follow it further", async () => {
    fake.answers = {
      ...rollout([], aRollout([{}])),
      watchRollout: (call) => void call.write(anEvent(RolloutStatus.PENDING)),
    };
    const { child, output, ended } = start(["apply", "-f", "-"]);
    child.stdin?.end(HELLO);
    await until(() => output.stderr.includes("pending"), "it follows");
    child.kill("SIGINT");
    assert.equal(await ended, 130);
    assert.match(
      output.stderr,
      /the rollout continues\. Follow it with\n {2}forage rollout status r-1 --watch/,
    );
    assert.equal(output.stdout, "");
  });

  test("exits with 143 at SIGTERM", async () => {
    fake.answers.exec = () => {};
    const { child, ended } = start(["exec", "web-1", "--", "sleep", "100"]);
    await until(() => fake.requests("exec").length === 1, "it runs");
    child.kill("SIGTERM");
    assert.equal(await ended, 143);
  });

  test("ends with the command although its standard input stays open", async () => {
    fake.answers.exec = (call) =>
      call.once("data", () => {
        call.write({ frame: { $case: "exitCode", value: 9 } });
        call.end();
      });
    const { ended } = start(["exec", "-i", "web-1", "--", "true"]);
    assert.equal(await ended, 9);
  });

  test("passes on standard input up to its end", async () => {
    let received = "";
    fake.answers.exec = (call) =>
      call.on("data", ({ frame }: ExecRequest) => {
        if (frame?.$case === "stdin") received += Buffer.from(frame.value).toString();
        if (frame?.$case !== "stdinClosed") return;
        call.write({ frame: { $case: "stdout", value: Buffer.from(`got ${received.length}\n`) } });
        call.write({ frame: { $case: "exitCode", value: 0 } });
        call.end();
      });
    const { child, output, ended } = start(["exec", "-i", "web-1", "--", "wc"]);
    child.stdin?.end("x".repeat(1_000_000));
    assert.equal(await ended, 0);
    assert.equal(output.stdout, "got 1000000\n");
  });

  test("ends silently when the reader of its output closes it", async () => {
    fake.answers.logs = (call) => {
      const send = (): void => {
        while (call.write({ data: Buffer.from("line\n".repeat(1000)) }));
        call.once("drain", send);
      };
      send();
    };
    const { child, output, ended } = start(["logs", "-f", "web-1"]);
    await until(() => output.stdout.length > 0, "it prints");
    child.stdout?.destroy();
    assert.equal(await ended, 141);
    assert.equal(output.stderr, "");
  });

  test("reports output that can't be written, even after all work is done", async () => {
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, [main, "version"], {
      env: environment(),
      stdio: ["ignore", full, "pipe"],
    });
    STARTED.push(child);
    closeSync(full);
    let stderr = "";
    child.stderr?.on("data", (text) => {
      stderr += text;
    });
    assert.equal(await new Promise((resolve) => child.on("close", resolve)), 1);
    assert.match(stderr, /^forage: the output can't be written: ENOSPC.*\n$/);
  });

  test("reports an unreachable coordinator", async () => {
    fake.cut();
    try {
      const { output, ended } = start(["get"]);
      assert.equal(await ended, 1);
      assert.match(output.stderr, /^forage: nothing listens at 127\.0\.0\.1:\d+: is it running.*\n$/);
    } finally {
      await fake.listen();
    }
  });
});

/** Starts a command in a terminal, followed by stty, which prints the terminal's settings. */
function startPty(line: string): { pty: IPty; output: () => string; ended: Promise<void> } {
  const command = `trap : INT; "$NODE" "$MAIN" ${line}; echo "exit=$?"; stty -a | tr -s ' ;' '\\n\\n' | grep -xE -- '-?(echo|icanon|isig)' | tr '\\n' ' '`;
  const env = { ...environment(), NODE: process.execPath, MAIN: main };
  const pty = spawnPty("/bin/sh", ["-c", command], { env, cols: 80, rows: 24 });
  STARTED.push(pty);
  let text = "";
  pty.onData((part) => {
    text += part;
  });
  return { pty, output: () => text, ended: new Promise((resolve) => pty.onExit(() => resolve())) };
}

describe("on a terminal", LIMIT, () => {
  test("passes raw keys, reports the size and its changes, and restores the terminal with exec -it", async () => {
    const frames: ExecRequest["frame"][] = [];
    fake.answers.exec = (call) =>
      call.on("data", ({ frame }: ExecRequest) => {
        frames.push(frame);
        if (frame?.$case === "start")
          call.write({ frame: { $case: "stdout", value: Buffer.from("prompt> ") } });
        if (frame?.$case !== "stdin" || !Buffer.from(frame.value).includes(4)) return;
        call.write({ frame: { $case: "exitCode", value: 42 } });
        call.end();
      });
    const { pty, output, ended } = startPty("exec -it web-1 -- sh");
    await until(() => output().includes("prompt> "), "the prompt");
    const [first] = frames;
    assert.ok(first?.$case === "start");
    assert.deepEqual(first.value.options, {
      command: ["sh"],
      stdin: true,
      tty: true,
      size: { columns: 80, rows: 24 },
      attach: undefined,
      endInput: undefined,
    });
    pty.resize(100, 30);
    await until(() => frames.some((frame) => frame?.$case === "resize"), "the new size");
    assert.deepEqual(
      frames.find((frame) => frame?.$case === "resize"),
      { $case: "resize", value: { columns: 100, rows: 30 } },
    );
    // Ctrl-C and Ctrl-D are sent to the remote program.
    pty.write("a\u0003");
    await until(
      () => frames.some((frame) => frame?.$case === "stdin" && Buffer.from(frame.value).includes(3)),
      "Ctrl-C",
    );
    pty.write("\u0004");
    await ended;
    assert.match(output(), /exit=42\r\n(?=.*\bisig )(?=.*\bicanon )(?=.*\becho )/);
    assert.doesNotMatch(output(), / -(echo|icanon|isig) /);
    assert.doesNotMatch(output(), /prompt> a/);
  });

  test("restores the terminal when the connection breaks", async () => {
    fake.answers.exec = (call) => {
      call.write({ frame: { $case: "stdout", value: Buffer.from("prompt> ") } });
    };
    const { output, ended } = startPty("exec -it web-1 -- sh");
    await until(() => output().includes("prompt> "), "the prompt");
    fake.cut();
    try {
      await ended;
    } finally {
      await fake.listen();
    }
    assert.match(output(), /exit=125\r\n(?=.*\bisig )(?=.*\bicanon )(?=.*\becho )/);
  });

  test("redraws lines in colour during an apply, and without colour with NO_COLOR", async () => {
    fake.answers = rollout(
      [anEvent(RolloutStatus.PENDING), anEvent(RolloutStatus.SUCCEEDED, "2/2 ready")],
      aRollout([{}]),
    );
    fake.answers.listResources = () => ({ resources: [] });
    fake.answers.apply = () => ({ rolloutId: "r-1" });
    const file = join(fake.dir, "hello.yaml");
    writeFileSync(file, HELLO);
    const coloured = startPty(`apply -f ${file}`);
    await coloured.ended;
    const picture = coloured.output().replaceAll("\u001b", "␛");
    assert.match(picture, /␛\[1A.*␛\[32m✓␛\[39m container_service\/web {2}done/s);
    const bare = startPty(`apply --no-color -f ${file}`);
    await bare.ended;
    assert.ok(!bare.output().includes("\u001b[32m"));
    assert.match(bare.output(), /✓ container_service\/web/);
  });

  test("asks before delete --all", async () => {
    fake.answers.listResources = () => ({ resources: [aResource()] });
    fake.answers.delete = () => ({ deleted: [] });
    const no = startPty("delete --all -n shop");
    await until(() => no.output().includes("[y/N]"), "the question");
    assert.match(
      no.output(),
      /container_service\/web\r\nDelete all of this, the whole namespace "shop" of coordinator [\d.:]+\?/,
    );
    no.pty.write("n\r");
    await no.ended;
    assert.match(no.output(), /nothing was deleted\r\nexit=1/);
    assert.deepEqual(fake.requests("delete"), []);
    const yes = startPty("delete --all -n shop");
    await until(() => yes.output().includes("[y/N]"), "the question");
    yes.pty.write("y\r");
    await yes.ended;
    assert.equal(fake.requests("delete").length, 1);
  });

  test("deletes nothing after Ctrl-C or Ctrl-D at the question of delete --all", async () => {
    fake.answers.listResources = () => ({ resources: [aResource()] });
    for (const [key, exit] of [
      ["\u0003", "exit=130"],
      ["\u0004", "exit=1"],
    ] as const) {
      const { pty, output, ended } = startPty("delete --all -n shop");
      await until(() => output().includes("[y/N]"), "the question");
      pty.write(key);
      await ended;
      assert.ok(output().includes(`${exit}\r\n`), output());
    }
    assert.deepEqual(fake.requests("delete"), []);
  });
});
