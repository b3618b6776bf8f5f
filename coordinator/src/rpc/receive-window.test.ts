import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { type TestContext, test } from "node:test";
import type { NodeId } from "@forage/identity";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { pino } from "pino";
import { CoordinatorError } from "../errors.ts";
import { Admission } from "./admission.ts";
import { serve } from "./serve.ts";

const LIMIT = { timeout: 60_000 };
/** A method that nodes may call. */
const PATH = "/forage.workspaces.v1.WorkspaceNodeService/Upload";
const KIBIBYTE = 1024;
const WINDOW_BYTES = 1024 * KIBIBYTE;
const DEFAULT_WINDOW_BYTES = 64 * KIBIBYTE;
/** The size of a message, so small that the messages read ahead of a handler have few bytes. */
const MESSAGE_BYTES = KIBIBYTE;
const OFFERED_BYTES = 8 * WINDOW_BYTES;
/** An upper bound of the bytes that are read ahead of a handler or in transit. */
const READ_AHEAD_BYTES = 512 * KIBIBYTE;

test("lets an upload send about a megabyte before the handler reads it", LIMIT, async (t) => {
  const { session, handled } = await anUploadServer(t, { receiveWindowBytes: WINDOW_BYTES });
  const widened = once(session, "remoteSettings");
  const upload = openUpload(session);
  await handled;
  const [settings] = await widened;
  assert.equal(settings.initialWindowSize, WINDOW_BYTES);
  const sent = offer(upload);
  while (sent.bytes < WINDOW_BYTES - READ_AHEAD_BYTES / 2) await ping(session);
  await ping(session);
  assert.ok(sent.bytes <= WINDOW_BYTES + READ_AHEAD_BYTES, `${sent.bytes} bytes were sent`);
});

test("keeps the default window of HTTP/2 without the setting, and for refused callers", LIMIT, async (t) => {
  const windows = async (options: Parameters<typeof anUploadServer>[1]): Promise<number[]> => {
    const { session, handled } = await anUploadServer(t, options);
    const sizes: number[] = [];
    session.on("remoteSettings", ({ initialWindowSize = 0 }) => sizes.push(initialWindowSize));
    const upload = openUpload(session);
    await (options.isDenied ? once(upload, "close") : handled);
    await ping(session);
    return [...sizes, session.remoteSettings.initialWindowSize ?? 0];
  };
  for (const sizes of [
    await windows({}),
    await windows({ receiveWindowBytes: WINDOW_BYTES, isDenied: true }),
  ])
    assert.ok(
      sizes.every((size) => size < DEFAULT_WINDOW_BYTES + 1),
      String(sizes),
    );
});

interface UploadServerOptions {
  readonly receiveWindowBytes?: number;
  readonly isDenied?: boolean;
}

/** Serves a method whose handler reads no request until the test has ended. */
async function anUploadServer(t: TestContext, { receiveWindowBytes, isDenied = false }: UploadServerOptions) {
  const raw = (bytes: Buffer): Buffer => bytes;
  const upload = {
    ...{ path: PATH, requestStream: true, responseStream: false },
    ...{ requestSerialize: raw, requestDeserialize: raw, responseSerialize: raw, responseDeserialize: raw },
  } as const;
  const identify = () => {
    if (isDenied) throw new CoordinatorError("UNAUTHENTICATED", "no credentials");
    return { type: "node", nodeId: "n1" as NodeId } as const;
  };
  const admission = new Admission({ identify, schedule: () => () => undefined });
  const server = new Server({ interceptors: [admission.interceptor] });
  const handled = Promise.withResolvers<void>();
  const stopping = new AbortController();
  const handler = async (): Promise<Buffer> => {
    handled.resolve();
    await once(stopping.signal, "abort");
    return Buffer.alloc(0);
  };
  serve(
    server,
    { upload },
    { upload: handler },
    {
      ...{ identify, stopping: stopping.signal, monotonicMs: () => 0, log: pino({ level: "silent" }) },
      ...{ streamOf: admission.streamOf, ...(receiveWindowBytes !== undefined && { receiveWindowBytes }) },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => undefined);
  t.after(() => {
    stopping.abort();
    session.destroy();
    server.forceShutdown();
  });
  await once(session, "remoteSettings");
  return { session, handled: handled.promise };
}

function openUpload(session: ClientHttp2Session) {
  const headers = { ":method": "POST", ":path": PATH, "content-type": "application/grpc", te: "trailers" };
  const stream = session.request(headers);
  stream.on("error", () => undefined);
  // The handler of a stream of requests is called at the first message.
  stream.write(messageOf(0));
  return stream;
}

/** Keeps writing messages, and counts the bytes that were sent. */
function offer(stream: ReturnType<typeof openUpload>): { readonly bytes: number } {
  const sent = { bytes: 0 };
  const next = (): void => {
    stream.write(messageOf(MESSAGE_BYTES), (error) => {
      if (error || sent.bytes >= OFFERED_BYTES) return;
      sent.bytes += MESSAGE_BYTES;
      next();
    });
  };
  next();
  return sent;
}

function messageOf(bytes: number): Buffer {
  const message = Buffer.alloc(5 + bytes);
  message.writeUInt32BE(bytes, 1);
  return message;
}

function ping(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve, reject) => {
    session.ping((error) => (error ? reject(error) : resolve()));
  });
}
