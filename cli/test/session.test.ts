import assert from "node:assert/strict";
import { Readable, Writable } from "node:stream";
import { after, before, beforeEach, describe, test } from "node:test";
import { LogOptions } from "@forage/proto/forage/agent/v1/agent";
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

/** A command that does not end fails its test instead of holding up all others. */
const LIMIT = { timeout: 180_000 };

describe("attach", LIMIT, () => {
  test("requests the container's own program, and ends with the detach keys in the input", async () => {
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
    const options = { command: [], stdin: true, tty: false, size: undefined, attach: true };
    assert.deepEqual(started?.frame?.$case === "start" && started.frame.value.options, options);
  });

  test("without input it ends with the container, with its exit code", async () => {
    for (const code of [0, 7]) {
      fake.answers.exec = (call) => onStart(call, () => finish(call, code));
      assert.equal((await forage("attach web-1 --no-stdin", "")).exitCode, code);
    }
    const refused = await forage("attach web-1 --no-stdin --detach-keys a", "");
    assert.match(refused.stderr, /--detach-keys is for input/);
  });
});

describe("exec", LIMIT, () => {
  test("passes on the command as it is, the output by kind, and the exit code", async () => {
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
        options: {
          command: ["sh", "-c", "exit\u00a042", "--help", "--", "-x"],
          stdin: false,
          tty: false,
          size: undefined,
          attach: undefined,
        },
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

  test("ends with the command, though standard input stays open", async () => {
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

  test("input is read no faster than the other side takes it", async () => {
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

  test("output is taken no faster than ours is read", async () => {
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

  test("exits with 125 when the command did not end by itself", async () => {
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

  test("a terminal is only for terminals", async () => {
    const { exitCode, stderr } = await forage("exec -it web-1 -- sh", "");
    assert.equal(exitCode, 1);
    assert.match(stderr, /-t needs a terminal/);
    assert.deepEqual(fake.requests("exec"), []);
  });

  test("Ctrl-C and --timeout end it", async () => {
    fake.answers.exec = () => {};
    assert.equal((await forage("exec web-1 --timeout 200ms -- sleep 100")).exitCode, 4);
  });
});

const logOptions = (fields: Partial<LogOptions>): LogOptions => LogOptions.fromPartial(fields);

type ExecAnswer = (call: ExecCall) => void;

describe("logs", LIMIT, () => {
  test("byte by byte, with its options", async () => {
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

  test("of a workload: lines stay whole, each with its pod; one pod's failure doesn't hide the others", async () => {
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

  test("hints for what has no logs", async () => {
    fake.answers.listPods = ({ name }) => ({ kept: [], pods: name === "" ? [aPod()] : [] });
    assert.match(
      (await forage("logs web")).stderr,
      /"web" is no pod; for its pods say container_service\/web, or name one: web-1/,
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
    assert.match((await forage("logs web --tail all")).stderr, /--tail: "all" is no number of lines/);
  });

  test("no faster than ours is read", async () => {
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

function aWorld(parts: Partial<Parameters<typeof run>[2]>): Parameters<typeof run>[2] {
  const sink = () => new Writable({ write: (_chunk, _encoding, done) => done() });
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

/** Waits until the value has stood still for a while: whatever moves it is held back. */
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
