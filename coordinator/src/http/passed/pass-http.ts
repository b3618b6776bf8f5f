import {
  CoordinatorServiceService,
  type HttpRequest,
  type HttpResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import { type Client, type ClientDuplexStream, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { CoordinatorError } from "../../errors.ts";
import type { Bound } from "../api/call.ts";
import { endToEnd } from "./headers.ts";

export interface PassHttpOptions {
  /**
   * Returns a channel to the leader. Waits for a leader for the given time, or for the default
   * time.
   */
  readonly client: (signal: AbortSignal, patienceMs?: number) => Promise<Client>;
  /** Waits a moment until this coordinator has the leader's writes up to the revision. */
  readonly reached: (revision: number) => Promise<void>;
}

type Call = ClientDuplexStream<HttpRequest, HttpResponse>;

/** The statuses of responses without a body. */
const EMPTY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

/**
 * Passes a request on to the leader, with the client's credentials and address, and returns the
 * response. @throws CoordinatorError UNAVAILABLE if the leader can't be reached.
 */
export async function passHttp(c: Bound, options: PassHttpOptions, patienceMs?: number): Promise<Response> {
  const { signal, body } = c.req.raw;
  const channel = await options.client(signal, patienceMs);
  const { path, requestSerialize, responseDeserialize } = CoordinatorServiceService.http;
  const call = channel.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata());
  // The reader of the response receives the error.
  call.on("error", () => {});
  const leave = (): void => call.cancel();
  signal.addEventListener("abort", leave, { once: true });
  call.on("close", () => signal.removeEventListener("abort", leave));
  call.write({ part: { $case: "head", value: headOf(c) } });
  send(call, body).catch(leave);
  const parts = call[Symbol.asyncIterator]();
  const head = await headFrom(parts);
  await options.reached(Number(head.revision));
  const init = { status: head.status, headers: endToEnd(head.headers) };
  return new Response(EMPTY.has(head.status) ? null : bodyOf(parts, leave), init);
}

function headOf(c: Bound) {
  const { method, url, headers } = c.req.raw;
  const { socket } = c.env.incoming;
  const { remoteAddress = "", remotePort = 0, localAddress = "", localPort = 0 } = socket;
  return {
    ...{ method, url, remoteAddress, remotePort, localAddress, localPort },
    headers: [...headers].map(([name, value]) => ({ name, value })),
    encrypted: "encrypted" in socket,
  };
}

async function send(call: Call, body: ReadableStream<Uint8Array> | null): Promise<void> {
  if (body !== null)
    for await (const chunk of body) {
      const hasRoom = call.write({ part: { $case: "body", value: Buffer.from(chunk) } });
      if (call.destroyed) return;
      if (!hasRoom) await new Promise((resolve) => call.once("drain", resolve).once("close", resolve));
    }
  call.end();
}

async function headFrom(parts: AsyncIterator<HttpResponse>) {
  try {
    const first = await parts.next();
    if (!first.done && first.value.part?.$case === "head") return first.value.part.value;
  } catch (error) {
    throw failureOf(error);
  }
  throw new CoordinatorError("UNAVAILABLE", "the leader gave no answer: try again");
}

function failureOf(error: unknown): CoordinatorError {
  const { code, details } = error as Partial<ServiceError>;
  const isOlder = code === status.UNIMPLEMENTED;
  const reason = isOlder ? "the leader is of an older version" : details;
  return new CoordinatorError("UNAVAILABLE", `the request can't be passed on: ${reason}`, { cause: error });
}

function bodyOf(parts: AsyncIterator<HttpResponse>, leave: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else if (value.part?.$case === "body") controller.enqueue(value.part.value);
    },
    cancel: leave,
  });
}
