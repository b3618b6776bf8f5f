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
import { type Arrival, type ForwardRules, requestHeaders, responseHeaders } from "./forward-headers.ts";

/** Sends a request to its target, and the response back, as both arrive. Resolves when the response is over. */
export async function forwardRequest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: ClientRequestArgs,
  arrival: Arrival,
  rules: ForwardRules,
): Promise<void> {
  const forwarded = openRequest(incoming, target, arrival, rules);
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) forwarded.destroy();
    // The target may answer before it has read everything. The rest would be taken for the next request.
    if (!incoming.complete) incoming.destroy();
  });
  // Not a pipeline: it would close the visitor's connection when the target fails, before the visitor learns why.
  incoming.pipe(forwarded);
  incoming.once("error", () => forwarded.destroy());
  const response = responseOf(forwarded, rules);
  response.catch(() => {});
  try {
    const answer = await response;
    outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", responseHeaders(answer, rules));
    // The visitor sees the headers of a response whose body comes later, such as events.
    outgoing.flushHeaders();
    await pipeline(answer, outgoing);
  } catch (error) {
    forwarded.destroy();
    if (outgoing.headersSent || outgoing.destroyed) outgoing.destroy();
    else refuse(outgoing, statusOf(error), `${rules.target} can't be reached: ${messageOf(error)}`);
  }
}

/** Answers with a line of text. */
export function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    ...(status === 503 && { "retry-after": "5" }),
  });
  response.end(`${message}\n`);
}

/** 503 where a later try may succeed, such as for a node that is away. */
export function statusOf(error: unknown): number {
  const later = error instanceof CoordinatorError && (error.retryable || error.code === "RESOURCE_EXHAUSTED");
  return later ? 503 : 502;
}

export function openRequest(
  incoming: IncomingMessage,
  target: ClientRequestArgs,
  arrival: Arrival,
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
