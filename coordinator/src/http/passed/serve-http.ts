import type {
  HttpHeader,
  HttpRequest,
  HttpRequestHead,
  HttpResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import type { HttpBindings } from "@hono/node-server";
import { CoordinatorError } from "../../errors.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { HttpFetch } from "../server.ts";
import { endToEnd } from "./headers.ts";
import { type AcceptConnection, passedPort, serveConnection } from "./serve-connection.ts";

export interface ServeHttpOptions {
  /** Answers a request like the port. */
  readonly fetch: HttpFetch;
  readonly accept: AcceptConnection;
  /** Returns the store's newest revision. */
  readonly revision: () => number;
}

/**
 * Serves an HTTP request that another coordinator passed on. The client's credentials in the
 * request are checked here.
 */
export async function* serveHttp(
  requests: AsyncIterable<HttpRequest>,
  { signal }: Pick<CallContext, "signal">,
  { fetch, accept, revision }: ServeHttpOptions,
): AsyncGenerator<HttpResponse> {
  const parts = requests[Symbol.asyncIterator]();
  const first = await parts.next();
  const head = first.done ? undefined : first.value.part;
  if (head?.$case !== "head") throw new CoordinatorError("INVALID", "the first message must be the head");
  const port = passedPort(head.value.method);
  if (port !== undefined) {
    const acceptAt = accept[port];
    if (acceptAt === undefined)
      throw new CoordinatorError("FAILED_PRECONDITION", `the leader serves no workspaces.${port}`);
    return yield* serveConnection(head.value, parts, signal, acceptAt);
  }
  const response = await fetch(requestOf(head.value, parts, signal), bindingsOf(head.value));
  yield {
    part: {
      $case: "head",
      value: {
        status: response.status,
        headers: headersOf(response.headers),
        revision: BigInt(isRead(head.value.method) ? 0 : revision()),
      },
    },
  };
  for await (const value of chunksOf(response, signal)) yield { part: { $case: "body", value } };
}

function requestOf(
  { method, url, headers }: HttpRequestHead,
  parts: AsyncIterator<HttpRequest>,
  signal: AbortSignal,
): Request {
  const given = endToEnd(headers);
  try {
    if (isRead(method)) return new Request(url, { method, headers: given, signal });
    return new Request(url, { method, headers: given, signal, body: bodyOf(parts), duplex: "half" });
  } catch (cause) {
    throw new CoordinatorError("INVALID", "the request's method, URL or headers are malformed", { cause });
  }
}

function bodyOf(parts: AsyncIterator<HttpRequest>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else if (value.part?.$case === "body") controller.enqueue(value.part.value);
    },
  });
}

/**
 * Returns bindings that describe the client's connection, with the only properties that are used.
 */
function bindingsOf(head: HttpRequestHead): HttpBindings {
  const { remoteAddress, remotePort, localAddress, localPort, encrypted } = head;
  const ends = { remoteAddress, remotePort, localAddress, localPort };
  const socket = encrypted ? { ...ends, encrypted } : ends;
  return { incoming: { socket }, outgoing: {} } as HttpBindings;
}

async function* chunksOf({ body }: Response, signal: AbortSignal): AsyncGenerator<Buffer> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  const leave = (): void => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield Buffer.from(value);
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

function headersOf(headers: Headers): HttpHeader[] {
  return [...headers].map(([name, value]) => ({ name, value }));
}

function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}
