import assert from "node:assert/strict";
import { Readable, Writable } from "node:stream";
import { after, before, beforeEach, describe, test } from "node:test";
import { ExecOptions, LogOptions, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ExecRequest, ExecResponse } from "@forage/proto/forage/operator/v1/operator";
import { type ServerDuplexStream, status } from "@grpc/grpc-js";
import { loadProgram } from "../src/commands/program.ts";
import { run } from "../src/run.ts";
import { aPod, aResource } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string, stdin?: string): Promise<Result> =>
  runCommand(line.split(" "), { env: fake.env, ...(stdin !== undefined && { stdin }) });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = { listPods: () => ({ kept: [], pods: [aPod()] }) };
});

type ExecCall = ServerDuplexStream<ExecRequest, ExecResponse>;

function onStart(call: ExecCall, run: (start: ExecRequest) => void): void {
  call.once("data", (first: ExecRequest) => run(first));
}

function finish(call: ExecCall, exitCode: number): void {
  call.write({ frame: { $case: "exitCode", value: exitCode } });
  call.end();
}

const NO_OPTIONS = ExecOptions.fromPartial({});

/** The time limit of a test. It keeps a command that never ends from delaying other tests. */
const LIMIT = { timeout: 180_000 };

describe("attach", LIMIT, () => {
  test("attaches to the container's own program, and ends with the detach keys", async () => {
    let started: ExecRequest | undefined;
    let input = "";
    fake.answers.exec = (call) => {
      onStart(call, (first) => {
        started = first;
      });
      call.on("data", ({ frame }: ExecRequest) => {
        if (frame?.$case === "stdin") input += frame.value.toString();
      });
      call.once("end", () => call.end());
    };
    const { exitCode, stderr } = await forage("attach web-1 --detach-keys ctrl-p,q", "one\n\x10x\x10qtwo");
    assert.deepEqual([exitCode, stderr], [0, ""]);
    assert.equal(input, "one\n\x10x");
    const options = { ...NO_OPTIONS, stdin: true, attach: true };
    assert.deepEqual(started?.frame?.$case === "start" && started.frame.value.options, options);
  });

  test("passes keys and the size of the terminal to a container with a terminal", async () => {
    const main = { name: "main", tty: true, stdin: true };
    fake.answers.listPods = () => ({
      ...{ kept: [], pods: [aPod({ template: PodTemplate.fromPartial({ container: main }) })] },
    });
    let started: ExecRequest | undefined;
    fake.answers.exec = (call) =>
      onStart(call, (first) => {
        started = first;
        finish(call, 0);
      });
    const modes: boolean[] = [];
    const setRawMode = (mode: boolean) => void modes.push(mode);
    const stdin = Object.assign(new Readable({ read() {} }), { isTTY: true, setRawMode });
    const stdout = Object.assign(sink(), { isTTY: true, columns: 90, rows: 30 });
    assert.equal(await run(await loadProgram(), ["attach", "web-1"], aWorld({ stdin, stdout })), 0);
    assert.deepEqual(modes, [true, false]);
    const options = { ...NO_OPTIONS, stdin: true, size: { columns: 90, rows: 30 }, attach: true };
    assert.deepEqual(started?.frame?.$case === "start" && started.frame.value.options, options);
  });

  test("passes the end of input to the program only with --end-input", async () => {
    for (const endInput of [undefined, true]) {
      let started: ExecRequest | undefined;
      fake.answers.exec = (call) => {
        onStart(call, (first) => {
          started = first;
        });
        call.on("data", ({ frame }: ExecRequest) => {
          if (frame?.$case === "stdinClosed") finish(call, 0);
        });
      };
      assert.equal((await forage(`attach web-1${endInput ? " --end-input" : ""}`, "one\n")).exitCode, 0);
      assert.equal(started?.frame?.$case === "start" && started.frame.value.options?.endInput, endInput);
    }
  });

  test("ends with the container and its exit code if there is no input", async () => {
    for (const code of [0, 7]) {
      fake.answers.exec = (call) => onStart(call, () => finish(call, code));
      assert.equal((await forage("attach web-1 --no-stdin", "")).exitCode, code);
    }
    for (const flag of ["--detach-keys a", "--end-input"]) {
      const refused = await forage(`attach web-1 --no-stdin ${flag}`, "");
      assert.match(refused.stderr, new RegExp(`${flag.split(" ")[0]} is for input`));
    }
  });
});

describe("exec", LIMIT, () => {
  test("passes on the command unchanged, both output streams, and the exit code", async () => {
    let start: ExecRequest | undefined;
    fake.answers.exec = (call) =>
      onStart(call, (first) => {
        start = first;
        call.write({ frame: { $case: "stdout", value: Buffer.from("out\n") } });
        call.write({ frame: { $case: "stderr", value: Buffer.from("err\n") } });
        finish(call, 42);
      });
    const result = await forage("exec web-1 -n shop -c side -- sh -c exit\u00a042 --help -- -x");
    assert.deepEqual(result, { exitCode: 42, stdout: "out\n", stderr: "err\n" });
    assert.deepEqual(start?.frame, {
      $case: "start",
      value: {
        namespace: "shop",
        pod: "web-1",
        container: "side",
        options: { ...NO_OPTIONS, command: ["sh", "-c", "exit\u00a042", "--help", "--", "-x"] },
      },
    });
  });

  test("pipes standard input and its end", async () => {
    const received: Buffer[] = [];
    fake.answers.exec = (call) =>
      call.on("data", ({ frame }: ExecRequest) => {
        if (frame?.$case === "stdin") received.push(Buffer.from(frame.value));
        if (frame?.$case === "stdinClosed") finish(call, 0);
      });
    const text = "x".repeat(200_000);
    assert.equal((await forage("exec -i web-1 -- cat", text)).exitCode, 0);
    assert.equal(Buffer.concat(received).toString(), text);
    assert.ok(received.every((chunk) => chunk.length <= 32 * 1024));
  });

  test("ends with the command although standard input stays open", async () => {
    fake.answers.exec = (call) => onStart(call, () => finish(call, 3));
    const endless = new Readable({ read() {} });
    const exitCode = await run(
      await loadProgram(),
      ["exec", "-i", "web-1", "--", "true"],
      aWorld({ stdin: endless }),
    );
    assert.equal(exitCode, 3);
    assert.equal(endless.isPaused(), true);
  });

  test("reads input no faster than the remote side accepts it", async () => {
    let call: ExecCall | undefined;
    fake.answers.exec = (given) => {
      call = given;
      call.pause();
    };
    let produced = 0;
    const source = new Readable({
      read() {
        produced += 64 * 1024;
        if (produced > 64 * 1024 * 1024) this.push(null);
        else this.push(Buffer.alloc(64 * 1024));
      },
    });
    const running = run(
      await loadProgram(),
      ["exec", "-i", "web-1", "--", "slow"],
      aWorld({ stdin: source }),
    );
    await settled(() => produced);
    assert.ok(produced > 0 && produced < 8 * 1024 * 1024, `${produced} bytes were read`);
    assert.ok(call);
    finish(call, 0);
    assert.equal(await running, 0);
  });

  test("reads output no faster than it can be written", async () => {
    let sent = 0;
    fake.answers.exec = (call) => {
      const send = (): void => {
        while (sent < 64 * 1024 * 1024) {
          sent += 64 * 1024;
          if (!call.write({ frame: { $case: "stdout", value: Buffer.alloc(64 * 1024) } }))
            return void call.once("drain", send);
        }
        finish(call, 7);
      };
      onStart(call, send);
    };
    let release = (): void => {};
    let taken = 0;
    const stuck = new Writable({
      highWaterMark: 1024,
      write(chunk: Buffer, _encoding, done) {
        taken += chunk.length;
        if (taken > 64 * 1024) done();
        else release = done;
      },
    });
    const running = run(await loadProgram(), ["exec", "web-1", "--", "yes"], aWorld({ stdout: stuck }));
    await settled(() => sent);
    assert.ok(sent > 0 && sent < 16 * 1024 * 1024, `${sent} bytes were sent`);
    release();
    assert.equal(await running, 7);
    assert.equal(taken, 64 * 1024 * 1024);
  });

  test("exits with 125 if the command did not end by itself", async () => {
    const refusals: [ExecAnswer, RegExp][] = [
      [
        (call) => void call.emit("error", grpcError(status.FAILED_PRECONDITION, "pod web-1 has no node yet")),
        /pod web-1 has no node yet/,
      ],
      [(call) => call.end(), /the session broke before the command's end was known/],
      [(call) => onStart(call, () => finish(call, 4096)), /^$/],
    ];
    for (const [answer, message] of refusals) {
      fake.answers.exec = answer;
      const { exitCode, stderr } = await forage("exec web-1 -- true");
      assert.equal(exitCode, 125);
      assert.match(stderr, message);
    }
    fake.answers.listPods = () => ({ kept: [], pods: [] });
    assert.equal((await forage("exec nobody -- true")).exitCode, 125);
  });

  test("refuses -t without a terminal", async () => {
    const { exitCode, stderr } = await forage("exec -it web-1 -- sh", "");
    assert.equal(exitCode, 1);
    assert.match(stderr, /-t needs a terminal/);
    assert.deepEqual(fake.requests("exec"), []);
  });

  test("ends a session at Ctrl-C and after --timeout", async () => {
    fake.answers.exec = () => {};
    assert.equal((await forage("exec web-1 --timeout 200ms -- sleep 100")).exitCode, 4);
  });
});

const logOptions = (fields: Partial<LogOptions>): LogOptions => LogOptions.fromPartial(fields);

type ExecAnswer = (call: ExecCall) => void;

describe("logs", LIMIT, () => {
  test("prints a log byte by byte, with its options", async () => {
    fake.answers.logs = (call) => {
      call.write({ data: Buffer.from("é".slice(0)).subarray(0, 1) });
      call.write({ data: Buffer.from("é").subarray(1) });
      call.write({ data: Buffer.from("\u001b[31mred") });
      call.end();
    };
    const { stdout, exitCode } = await forage("logs 0123 -f -c side --tail 20");
    assert.deepEqual([stdout, exitCode], ["é\u001b[31mred", 0]);
    assert.deepEqual(fake.requests("logs"), [
      {
        namespace: "default",
        pod: "web-1",
        container: "side",
        options: logOptions({ follow: true, tailLines: 20 }),
      },
    ]);
    await forage("logs web-1 -p --timestamps --stream stderr --since 2026-01-31T09:00:00.5+01:00");
    assert.deepEqual(
      (fake.requests("logs")[1] as { options: unknown }).options,
      logOptions({
        previous: true,
        timestamps: true,
        stream: "stderr",
        since: { seconds: 1_769_846_400n, nanos: 500_000_000 },
      }),
    );
  });

  test("prefixes whole lines of a workload's logs by the pod, and continues after the failure of one pod", async () => {
    fake.answers.listPods = ({ workload }) => ({
      kept: [],
      pods:
        workload === "web"
          ? [aPod({ name: "web-1" }), aPod({ name: "web-22" }), aPod({ name: "web-3" })]
          : [],
    });
    fake.answers.logs = (call) => {
      const { pod } = call.request;
      if (pod === "web-3")
        return void call.emit("error", grpcError(status.FAILED_PRECONDITION, "no container yet"));
      for (const part of ["one\ntw", "o\n", "last"]) call.write({ data: Buffer.from(part) });
      call.end();
    };
    const all = [
      "",
      "web-1  | last",
      "web-1  | one",
      "web-1  | two",
      "web-22 | last",
      "web-22 | one",
      "web-22 | two",
    ];
    const { stdout, stderr, exitCode } = await forage("logs cs/web");
    assert.equal(exitCode, 1);
    assert.equal(stderr, "web-3: no container yet\nforage: 1 of 3 pods gave no logs\n");
    assert.deepEqual(stdout.split("\n").sort(), all);
  });

  test("gives hints for objects without logs", async () => {
    fake.answers.listPods = ({ name }) => ({ kept: [], pods: name === "" ? [aPod()] : [] });
    assert.match(
      (await forage("logs web")).stderr,
      /"web" is not a pod; for its pods use container_service\/web, or name one: web-1/,
    );
    fake.answers.listPods = () => ({ kept: [], pods: [] });
    fake.answers.listResources = () => ({
      resources: [
        aResource({
          kind: "service",
          name: "front",
          spec: { name: "front", spec: { $case: "service", value: { target: "web" } } } as never,
        }),
      ],
    });
    assert.match(
      (await forage("logs svc/front")).stderr,
      /svc\/front has no pods; try container_service\/web/,
    );
    assert.match((await forage("logs web --tail all")).stderr, /--tail: "all" is not a number of lines/);
  });

  test("reads logs no faster than they can be written", async () => {
    let sent = 0;
    fake.answers.logs = (call) => {
      const send = (): void => {
        while (sent < 64 * 1024 * 1024) {
          sent += 64 * 1024;
          if (!call.write({ data: Buffer.alloc(64 * 1024) })) return void call.once("drain", send);
        }
        call.end();
      };
      send();
    };
    const abort = new AbortController();
    const stuck = new Writable({ highWaterMark: 1024, write: () => {} });
    const running = run(
      await loadProgram(),
      ["logs", "web-1"],
      aWorld({ stdout: stuck, interrupted: abort.signal }),
    );
    await settled(() => sent);
    assert.ok(sent < 16 * 1024 * 1024, `${sent} bytes were sent`);
    abort.abort();
    assert.equal(await running, 130);
  });
});

const sink = () => new Writable({ write: (_chunk, _encoding, done) => done() });

function aWorld(parts: Partial<Parameters<typeof run>[2]>): Parameters<typeof run>[2] {
  return {
    env: { FORAGE_CONFIG: "/dev/null", ...fake.env },
    homeDir: "/nonexistent",
    stdin: Readable.from([]),
    stdout: sink(),
    stderr: sink(),
    nowMs: Date.now,
    randomId: () => "id",
    random: () => 0,
    interrupted: new AbortController().signal,
    ...parts,
  };
}

/**
 * Waits until the value has not changed for a while, because the sender is stopped by flow control.
 */
async function settled(value: () => number): Promise<void> {
  let last = -1;
  let since = performance.now();
  const deadline = since + 90_000;
  while (performance.now() - since < 300) {
    assert.ok(performance.now() < deadline, "it never stood still");
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (value() === last && last > 0) continue;
    last = value();
    since = performance.now();
  }
}
