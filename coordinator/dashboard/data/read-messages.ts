import { ApiError } from "./api-error.ts";
import { type AttemptsOptions, attempts, reconnectMs } from "./attempts.ts";

export interface ReadOptions extends Pick<AttemptsOptions, "signal" | "random" | "wait"> {
  /** Opens the stream. Throws ApiError if the coordinator returns an error. */
  readonly open: (signal: AbortSignal) => Promise<Response>;
  /** Called with the data of each message, in order. */
  readonly onMessage: (data: string) => void;
  /** Called when the stream breaks. The stream is then opened again. */
  readonly onLost?: (() => void) | undefined;
  /** Called when the coordinator refuses the stream. The stream is opened again later. */
  readonly onRefused?: (() => void) | undefined;
  /** The longest delay before the next attempt after a refusal, in milliseconds. */
  readonly retryMs: number;
}

/**
 * Reads a stream of server-sent events until the signal aborts, and opens it again whenever it
 * ends. Each new stream begins with the present state.
 */
export function readMessages(options: ReadOptions): Promise<void> {
  const { open, onMessage, onLost, onRefused, retryMs, signal } = options;
  const attempt = async (opened: () => void): Promise<void> => {
    const { body } = await open(signal);
    opened();
    for await (const data of messagesOf(body)) onMessage(data);
    throw new Error("the stream has ended");
  };
  return attempts(attempt, {
    ...options,
    waitMs: (error, failures) => (isRefusal(error) ? retryMs : reconnectMs(failures)),
    onFailed: (error) => {
      onLost?.();
      if (isRefusal(error)) onRefused?.();
    },
  });
}

/**
 * Reports whether the coordinator refused the request. Otherwise the coordinator, or the leader,
 * could not be reached.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.code !== "UNAVAILABLE";
}

/** Yields the data of each message. Fields other than `data` are ignored. */
async function* messagesOf(body: ReadableStream<Uint8Array<ArrayBuffer>> | null): AsyncGenerator<string> {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let data: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = `${rest}${value}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      if (line !== "" || data.length === 0) continue;
      yield data.join("\n");
      data = [];
    }
  }
}
