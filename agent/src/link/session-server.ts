import type {
  AgentServiceClient,
  ServeRequest,
  ServeResponse,
  SessionRequest,
} from "@forage/proto/forage/agent/v1/agent";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import type { LogOf, LogReadOptions } from "../logs/container-logs.ts";
import type { FoundContainer } from "../pods/pod-supervisor.ts";
import type { RuntimeExec, RuntimeExecOptions } from "../runtime/runtime.ts";

/** What sessions are about. */
export interface SessionHost {
  /** Without a name: the main container. Undefined if there is no such pod or container. */
  find(podUid: string, container: string): FoundContainer | undefined;
  /** Ends by itself unless it follows; then when the container is gone for good. */
  readLog(of: LogOf, options: LogReadOptions, signal: AbortSignal): AsyncIterable<Uint8Array>;
  exec(containerId: string, options: RuntimeExecOptions, signal: AbortSignal): RuntimeExec;
}

// Each holds a stream and, for an exec, a process on the host.
const SESSIONS_MAX = 64;
// Below gRPC's frame size, so that a session never holds up the others on the connection for long.
const CHUNK_MAX_BYTES = 32 * 1024;

type ServeStream = ClientDuplexStream<ServeRequest, ServeResponse>;
type Frame = NonNullable<ServeRequest["frame"]>;

/** Serves log and exec sessions, each on a stream of its own that the agent opens. */
export class SessionServer {
  readonly #host: SessionHost;
  readonly #open = new Set<AbortController>();

  constructor(host: SessionHost) {
    this.#host = host;
  }

  get count(): number {
    return this.#open.size;
  }

  open(request: SessionRequest, client: AgentServiceClient): void {
    const ending = new AbortController();
    const stream = client.serve();
    stream.on("error", () => ending.abort());
    stream.on("close", () => ending.abort());
    const writer = new FrameWriter(stream, ending.signal);
    const full = this.#open.size >= SESSIONS_MAX;
    this.#open.add(ending);
    const served = full
      ? Promise.reject(new Error(`${SESSIONS_MAX} sessions are open on this node`))
      : this.#serve(request, stream, writer, ending);
    // Waited for only after the first frame is out.
    served.catch(() => undefined);
    void writer
      .send({ $case: "sessionId", value: request.sessionId })
      .then(() => served)
      .catch((error) => ({ exitCode: 1, error: error instanceof Error ? error.message : String(error) }))
      .then(async (end) => {
        await writer.send({ $case: "end", value: end });
        stream.end();
      })
      .finally(() => {
        this.#open.delete(ending);
        ending.abort();
      });
  }

  close(): void {
    for (const ending of this.#open) ending.abort();
  }

  async #serve(
    request: SessionRequest,
    stream: ServeStream,
    writer: FrameWriter,
    ending: AbortController,
  ): Promise<{ exitCode: number; error: string }> {
    const { signal } = ending;
    const found = this.#host.find(request.podUid, request.container);
    if (found === undefined) throw new Error("there is no such container on this node");
    switch (request.kind?.$case) {
      case "logs": {
        const { follow, tailLines, previous } = request.kind.value;
        const attempt = previous ? found.attempt - 1 : found.attempt;
        if (attempt < 1)
          throw new Error(previous ? "it has not been restarted" : "it has not been started yet");
        const of = { podUid: request.podUid, container: found.container, attempt };
        // Nothing comes down, but only a stream that is read tells of its end.
        void readInput(undefined, stream).finally(() => ending.abort());
        const options = { follow: follow && !previous, ...(tailLines !== undefined && { tailLines }) };
        for await (const data of this.#host.readLog(of, options, signal)) await writer.data("stdout", data);
        return { exitCode: 0, error: "" };
      }
      case "exec": {
        if (found.id === undefined) throw new Error(`container ${found.container} is not running`);
        const { command, stdin, tty, size } = request.kind.value;
        const options = { command, stdin, tty, ...(size && { columns: size.columns, rows: size.rows }) };
        const exec = this.#host.exec(found.id, options, signal);
        void readInput(exec, stream).finally(() => ending.abort());
        for await (const { stream: name, data } of exec.output) await writer.data(name, data);
        return { exitCode: await exec.exitCode, error: "" };
      }
      case "portForward":
      case "copy":
        throw new Error(`this agent doesn't serve ${request.kind.$case}`);
      case undefined:
        throw new Error("the session asks for nothing");
      default:
        return request.kind satisfies never;
    }
  }
}

/** Until the client ends it. Each piece is written before the next is read, so that a command that doesn't read slows its client. */
async function readInput(exec: RuntimeExec | undefined, stream: ServeStream): Promise<void> {
  let taker = exec;
  try {
    for await (const { frame } of stream as AsyncIterable<ServeResponse>) {
      if (frame === undefined || taker === undefined) continue;
      // A command that takes no more input may still have something to say.
      await pass(frame, taker).catch(() => {
        taker = undefined;
      });
    }
  } catch {
    // The stream broke: nobody listens any more.
  }
}

async function pass(frame: NonNullable<ServeResponse["frame"]>, exec: RuntimeExec): Promise<void> {
  switch (frame.$case) {
    case "stdin":
      return exec.write(frame.value);
    case "stdinClosed":
      return exec.endInput();
    case "resize":
      return exec.resize(frame.value.columns, frame.value.rows);
    default:
      return frame satisfies never;
  }
}

class FrameWriter {
  readonly #stream: ServeStream;
  readonly #signal: AbortSignal;

  constructor(stream: ServeStream, signal: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
  }

  async data(name: "stdout" | "stderr", data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.byteLength; at += CHUNK_MAX_BYTES) {
      await this.send({ $case: name, value: Buffer.from(data.subarray(at, at + CHUNK_MAX_BYTES)) });
    }
  }

  /** Resolves when there is room for more, or when nobody listens any longer. */
  async send(frame: Frame): Promise<void> {
    if (this.#signal.aborted || this.#stream.write({ frame })) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stream.once("drain", resolve);
    this.#signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
  }
}
