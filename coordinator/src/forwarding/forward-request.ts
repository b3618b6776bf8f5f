import {
  type ClientRequest,
  type ClientRequestArgs,
  type IncomingMessage,
  request,
  type ServerResponse,
} from "node:http";
import { pipeline } from "node:stream/promises";
import { messageOf } from "@forage/common/message-of";
import { CoordinatorError } from "../errors.ts";
import { type ForwardRules, type RequestOrigin, requestHeaders, responseHeaders } from "./forward-headers.ts";

/**
 * Forwards a request to its target and the response to the client, both as streams. Resolves when the response has ended.
 */
export async function forwardRequest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: ClientRequestArgs,
  arrival: RequestOrigin,
  rules: ForwardRules,
): Promise<void> {
  const forwarded = openRequest(incoming, target, arrival, rules);
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) forwarded.destroy();
    // If the target has responded before it has read the whole request, the rest would be taken for the next request.
    if (!incoming.complete) incoming.destroy();
  });
  // A pipeline would close the client's connection when the target fails, before the client gets an error response.
  incoming.pipe(forwarded);
  incoming.once("error", () => forwarded.destroy());
  const response = responseOf(forwarded, rules);
  response.catch(() => {});
  try {
    const answer = await response;
    outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", responseHeaders(answer, rules));
    // Sends the headers at once, because the body may come later, as with server-sent events.
    outgoing.flushHeaders();
    await pipeline(answer, outgoing);
  } catch (error) {
    forwarded.destroy();
    if (outgoing.headersSent || outgoing.destroyed) outgoing.destroy();
    else refuse(outgoing, statusOf(error), `${rules.target} can't be reached: ${messageOf(error)}`);
  }
}

/** Responds with a line of text. */
export function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    ...(status === 503 && { "retry-after": "5" }),
  });
  response.end(`${message}\n`);
}

/** Returns the HTTP status for the error: 503 if a later attempt may succeed, such as for an unreachable node. */
export function statusOf(error: unknown): number {
  const later = error instanceof CoordinatorError && (error.retryable || error.code === "RESOURCE_EXHAUSTED");
  return later ? 503 : 502;
}

export function openRequest(
  incoming: IncomingMessage,
  target: ClientRequestArgs,
  arrival: RequestOrigin,
  rules: ForwardRules,
  extra: readonly string[] = [],
): ClientRequest {
  const headers = [...requestHeaders(incoming, arrival, rules), ...extra];
  const hasBody =
    incoming.headers["transfer-encoding"] !== undefined || incoming.headers["content-length"] !== undefined;
  if (hasBody && incoming.headers["content-length"] === undefined)
    headers.push("Transfer-Encoding", "chunked");
  return request({
    ...target,
    method: incoming.method,
    path: incoming.url,
    setHost: false,
    headers,
  });
}

function responseOf(forwarded: ClientRequest, { target }: ForwardRules): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    forwarded.once("response", resolve);
    forwarded.on("error", reject);
    forwarded.once("close", () => reject(new Error(`${target} closed the connection without a response`)));
  });
}
