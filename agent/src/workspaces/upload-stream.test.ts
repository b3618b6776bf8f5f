import assert from "node:assert/strict";
import { test } from "node:test";
import { UploadRequest, type UploadResponse } from "@forage/proto/forage/workspaces/v1/workspaces";
import { UploadStream } from "./upload-stream.ts";

type Answered = (error: Error | null, response: UploadResponse | undefined) => void;

/** A call that accepts one message for each call of `take`. */
class Call {
  readonly messages: UploadRequest[] = [];
  readonly #waiting: (() => void)[] = [];
  ended = false;
  cancelled = false;
  answered: Answered = () => undefined;

  write(message: Buffer, taken: () => void): void {
    // Copied, as the transport does before it reports that it has accepted the message.
    this.messages.push(UploadRequest.decode(Buffer.from(message)));
    this.#waiting.push(taken);
  }

  end(): void {
    this.ended = true;
  }

  cancel(): void {
    this.cancelled = true;
    this.answered(new Error("cancelled"), undefined);
  }

  accept(): boolean {
    const taken = this.#waiting.shift();
    taken?.();
    return taken !== undefined;
  }

  get data(): Buffer {
    return Buffer.concat(
      this.messages.flatMap(({ part }) => (part?.$case === "data" ? [Buffer.from(part.value)] : [])),
    );
  }
}

function open(signal = new AbortController().signal) {
  const call = new Call();
  const upload = new UploadStream((answered) => {
    call.answered = answered;
    return call;
  }, signal);
  return { call, upload };
}

const START: UploadRequest = {
  part: {
    $case: "start",
    value: { instanceId: "i", transferId: "t", object: "o", sizeBytes: 0n, sha256: "" },
  },
};
const END: UploadRequest = { part: { $case: "end", value: { sizeBytes: 3n, sha256: "ab" } } };

test("sends the start, the data in parts of 256 KiB, and the end", async () => {
  const { call, upload } = open();
  const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, at) => (at * 31) % 251));
  upload.send(START);
  // All chunks share one buffer.
  const chunk = Buffer.alloc(99_999);
  const pump = setInterval(() => call.accept(), 0);
  for (let at = 0; at < bytes.length; at += chunk.length) {
    const length = bytes.copy(chunk, 0, at);
    await upload.data(chunk.subarray(0, length));
  }
  clearInterval(pump);
  upload.end(END);
  const cases = call.messages.map(({ part }) => part?.$case);
  assert.deepEqual(cases, ["start", "data", "data", "data", "end"]);
  assert.ok(call.data.equals(bytes));
  assert.ok(call.ended);
});

test("waits while two parts are being sent", async () => {
  const { call, upload } = open();
  let done = false;
  const sending = upload.data(Buffer.alloc(3 * 256 * 1024)).then(() => {
    done = true;
  });
  await new Promise(setImmediate);
  assert.deepEqual([call.messages.length, done], [2, false]);
  call.accept();
  await sending;
  assert.equal(call.messages.length, 3);
});

test("sends nothing after the response, which also ends a wait", async () => {
  const { call, upload } = open();
  const sending = upload.data(Buffer.alloc(3 * 256 * 1024));
  await new Promise(setImmediate);
  call.answered(null, { archive: undefined, existed: true });
  await sending;
  upload.end(END);
  assert.equal(upload.settled, true);
  assert.deepEqual([call.messages.length, call.ended], [2, false]);
  assert.equal((await upload.response).existed, true);
  upload.close();
  assert.equal(call.cancelled, false);
});

test("cancels the call on abort and on close", async () => {
  const abort = new AbortController();
  const first = open(abort.signal);
  abort.abort();
  await assert.rejects(first.upload.response, /cancelled/);
  const second = open();
  second.upload.close();
  assert.equal(second.call.cancelled, true);
});
