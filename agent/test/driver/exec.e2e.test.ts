import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { after, before, test } from "node:test";
import {
  ExecTaskStreamingRequest,
  type ExecTaskStreamingResponse,
  type TaskConfig,
} from "@forage/proto/plugins/drivers/proto/driver";
import { until } from "../until.ts";
import { DriverUnderTest } from "./driver-under-test.ts";

const LIMIT = { timeout: 120_000 };
const BIG_BYTES = 100 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

let driver: DriverUnderTest;
let task: TaskConfig;
before(async () => {
  driver = await DriverUnderTest.start();
  task = driver.task({ command: "sleep", args: ["1000"] }, { env: { GREETING: "hello" } });
  await driver.startTask(task);
}, LIMIT);
after(() => driver?.close(), LIMIT);

/** Starts a streaming exec as Nomad's client does. */
function execStreaming(command: readonly string[], tty = false) {
  const call = driver.client.execTaskStreaming();
  const send = async (fields: Parameters<typeof ExecTaskStreamingRequest.fromPartial>[0]): Promise<void> => {
    if (!call.write(ExecTaskStreamingRequest.fromPartial(fields))) await once(call, "drain");
  };
  void send({ setup: { taskId: task.id, command: [...command], tty } });
  const responses: ExecTaskStreamingResponse[] = [];
  const ended = (async () => {
    for await (const response of call) responses.push(response as ExecTaskStreamingResponse);
  })();
  ended.catch(() => undefined);
  const text = (stream: "stdout" | "stderr") =>
    Buffer.concat(responses.map((it) => it[stream]?.data ?? Buffer.alloc(0))).toString();
  return { call, send, responses, ended, text };
}

test("a command returns its output and exit code", LIMIT, async () => {
  const command = ["sh", "-c", 'echo "$GREETING"; echo err >&2; exit 7'];
  const { stdout, stderr, result } = await driver.call("execTask", { taskId: task.id, command });
  assert.deepEqual([stdout.toString(), stderr.toString()], ["hello\n", "err\n"]);
  assert.deepEqual(result, { exitCode: 7, signal: 0, oomKilled: false });
  const missing = await driver.call("execTask", { taskId: task.id, command: ["no-such-program"] });
  assert.equal(missing.result?.exitCode, 127);
  await assert.rejects(driver.call("execTask", { taskId: task.id, command: [] }), { code: 3 });
});

test("kills a command that exceeds its time limit", LIMIT, async () => {
  const command = ["sh", "-c", "trap '' TERM; sleep 777"];
  const timeout = { seconds: 0n, nanos: 3e8 };
  const exec = driver.call("execTask", { taskId: task.id, command, timeout });
  await assert.rejects(exec, { code: 9, details: /did not end within 300 ms/ });
  const { stdout } = await driver.call("execTask", { taskId: task.id, command: ["ps", "-o", "args"] });
  assert.doesNotMatch(stdout.toString(), /sleep 777/);
});

test(
  "the stream has this order: data, the end of both streams, the exit code, the end of the call",
  LIMIT,
  async () => {
    const { responses, ended, text } = execStreaming(["sh", "-c", "echo out; echo err >&2; exit 3"]);
    await ended;
    assert.deepEqual([text("stdout"), text("stderr")], ["out\n", "err\n"]);
    const kinds = responses.map(({ stdout, stderr, exited }) =>
      exited ? "exited" : stdout?.close ? "stdout closed" : stderr?.close ? "stderr closed" : "data",
    );
    assert.deepEqual(kinds.slice(-3), ["stdout closed", "stderr closed", "exited"]);
    assert.equal(kinds.indexOf("stdout closed"), kinds.length - 3);
    assert.deepEqual(responses.at(-1)?.result, { exitCode: 3, signal: 0, oomKilled: false });
  },
);

test("passes input, heartbeats and the end of input to the command", LIMIT, async () => {
  const { send, ended, text, responses } = execStreaming(["sh", "-c", "cat; echo end"]);
  await send({});
  await send({ stdin: { data: Buffer.from("one\n") } });
  await send({});
  await send({ stdin: { data: Buffer.from("two\n"), close: true } });
  await ended;
  assert.equal(text("stdout"), "one\ntwo\nend\n");
  assert.equal(responses.at(-1)?.result?.exitCode, 0);
});

test("a terminal merges the streams, and the last size applies", LIMIT, async () => {
  // nerdctl passes a size on beside the input, so a line that was sent after the size can arrive before it.
  const size = 'for i in $(seq 100); do test "$(stty size)" = "45 123" && break; sleep 0.1; done; stty size';
  const script = `test -t 0 && echo terminal; echo err >&2; read line; ${size}; sleep 600 & exit 4`;
  const { send, ended, text, responses } = execStreaming(["sh", "-c", script], true);
  await send({ ttySize: { width: 80, height: 25 } });
  await send({ ttySize: { width: 123, height: 45 } });
  await send({ stdin: { data: Buffer.from("go\r") } });
  await ended;
  assert.match(text("stdout"), /terminal\r\n(.*\r\n)*err\r\n/);
  assert.match(text("stdout"), /45 123/);
  assert.equal(text("stderr"), "");
  assert.equal(responses.at(-1)?.result?.exitCode, 4);
});

test("ends the command when the client disconnects", LIMIT, async () => {
  const { call, send, responses, ended } = execStreaming(["sh", "-c", "echo begun; sleep 888"]);
  await send({});
  await until("the command has begun", () => responses.length > 0);
  call.cancel();
  await assert.rejects(ended, { code: 1 });
  const isThere = async () => {
    const { stdout } = await driver.call("execTask", { taskId: task.id, command: ["ps", "-o", "args"] });
    return stdout.toString().includes("sleep 888");
  };
  await until("the command is gone", async () => !(await isThere()));
});

test("100 MB of input return unchanged", LIMIT, async () => {
  const call = driver.client.execTaskStreaming();
  call.write(
    ExecTaskStreamingRequest.fromPartial({ setup: { taskId: task.id, command: ["cat"], tty: false } }),
  );
  const [sent, received] = [createHash("sha256"), createHash("sha256")];
  const block = randomBytes(CHUNK_BYTES);
  const writing = (async () => {
    for (let bytes = 0; bytes < BIG_BYTES; bytes += CHUNK_BYTES) {
      block.writeUInt32LE(bytes, 0);
      const data = Buffer.from(block);
      sent.update(data);
      const request = ExecTaskStreamingRequest.fromPartial({ stdin: { data } });
      if (!call.write(request)) await once(call, "drain");
    }
    call.write(ExecTaskStreamingRequest.fromPartial({ stdin: { close: true } }));
  })();
  let bytes = 0;
  let exitCode: number | undefined;
  for await (const response of call) {
    const { stdout, result } = response as ExecTaskStreamingResponse;
    received.update(stdout?.data ?? Buffer.alloc(0));
    bytes += stdout?.data.length ?? 0;
    exitCode ??= result?.exitCode;
  }
  await writing;
  assert.deepEqual([bytes, exitCode], [BIG_BYTES, 0]);
  assert.equal(received.digest("hex"), sent.digest("hex"));
});

test("rejects a first message that is not the setup of a running task", LIMIT, async () => {
  for (const [request, code] of [
    [{ stdin: { data: Buffer.from("x") } }, 3],
    [{ setup: { taskId: "a/b/00000000", command: ["true"], tty: false } }, 2],
    [{ setup: { taskId: task.id, command: [], tty: false } }, 3],
  ] as const) {
    const call = driver.client.execTaskStreaming();
    call.write(ExecTaskStreamingRequest.fromPartial(request as never));
    await assert.rejects(
      async () => {
        for await (const _ of call);
      },
      { code },
    );
  }
});
