import { type ClientRequestArgs, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { messageOf } from "@forage/common/message-of";
import { type ForwardRules, type RequestOrigin, responseHeaders } from "./forward-headers.ts";
import { openRequest, statusOf } from "./forward-request.ts";

type Answer =
  | { readonly type: "upgrade"; readonly response: IncomingMessage; readonly head: Buffer }
  | { readonly type: "response"; readonly response: IncomingMessage };

/**
 * Forwards an upgrade request, such as of a WebSocket. The two connections are joined only after the target has responded
 * with status 101. Otherwise a second request on the connection would not be checked.
 */
export async function forwardUpgrade(
  incoming: IncomingMessage,
  client: Duplex,
  head: Buffer,
  arrival: RequestOrigin,
  rules: ForwardRules,
  dial: () => Duplex,
): Promise<void> {
  let tunnel: Duplex | undefined;
  let answered = false;
  try {
    tunnel = dial();
    const answer = await ask(incoming, arrival, tunnel, rules);
    answered = true;
    client.write(headOf(answer, rules));
    if (answer.type === "response") return await pipeline(answer.response, client);
    if (answer.head.length > 0) client.write(answer.head);
    if (head.length > 0) tunnel.write(head);
    await Promise.all([pipeline(client, tunnel), pipeline(tunnel, client)]);
  } catch (error) {
    if (!answered && client.writable)
      refuseUpgrade(client, statusOf(error), `${rules.target} can't be reached: ${messageOf(error)}`);
    else client.destroy();
  } finally {
    tunnel?.destroy();
    if (!client.writableEnded) client.end();
  }
}

/** Responds with a line of text, and closes the connection. */
export function refuseUpgrade(client: Duplex, status: number, message: string): void {
  const body = `${message}\n`;
  const text =
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n${body}`;
  // Otherwise a client that doesn't close its side would keep the connection open.
  client.end(text, () => client.destroy());
}

function ask(
  incoming: IncomingMessage,
  arrival: RequestOrigin,
  tunnel: Duplex,
  rules: ForwardRules,
): Promise<Answer> {
  const target: ClientRequestArgs = { createConnection: () => tunnel };
  const protocol = incoming.headers.upgrade ?? "";
  const request = openRequest(incoming, target, arrival, rules, [
    "Connection",
    "Upgrade",
    "Upgrade",
    protocol,
  ]);
  return new Promise((resolve, reject) => {
    request.once("upgrade", (response, _socket, head) => resolve({ type: "upgrade", response, head }));
    request.once("response", (response) => resolve({ type: "response", response }));
    request.once("error", reject);
    request.once("close", () =>
      reject(new Error(`${rules.target} closed the connection without a response`)),
    );
    request.end();
  });
}

/** Returns the status line and the headers for the client. */
function headOf({ type, response }: Answer, rules: ForwardRules): string {
  const pairs = responseHeaders(response, rules);
  if (type === "upgrade") pairs.push("Connection", "Upgrade", "Upgrade", response.headers.upgrade ?? "");
  // Without a Content-Length, the end of the connection ends the body, because Node has decoded the chunked encoding.
  else pairs.push("Connection", "close");
  let text = `HTTP/1.1 ${response.statusCode} ${response.statusMessage ?? ""}\r\n`;
  for (let index = 0; index + 1 < pairs.length; index += 2)
    text += `${pairs[index]}: ${pairs[index + 1]}\r\n`;
  return `${text}\r\n`;
}
