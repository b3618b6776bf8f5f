import { type ClientRequestArgs, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { messageOf } from "@forage/common/message-of";
import { type Arrival, type ForwardRules, responseHeaders } from "./forward-headers.ts";
import { openRequest, statusOf } from "./forward-request.ts";
import type { TunnelStream } from "./tunnel-stream.ts";

type Answer =
  | { readonly type: "upgrade"; readonly response: IncomingMessage; readonly head: Buffer }
  | { readonly type: "response"; readonly response: IncomingMessage };

/**
 * Forwards a request to upgrade, such as to a WebSocket. Both sides are joined only after the target has accepted with status 101:
 * before, a second request on the connection would not be checked.
 */
export async function forwardUpgrade(
  incoming: IncomingMessage,
  client: Duplex,
  head: Buffer,
  arrival: Arrival,
  rules: ForwardRules,
  dial: () => TunnelStream,
): Promise<void> {
  let tunnel: TunnelStream | undefined;
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

/** Answers with a line of text and closes the connection. */
export function refuseUpgrade(client: Duplex, status: number, message: string): void {
  const body = `${message}\n`;
  const text =
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n${body}`;
  // A client that never closes its side would keep the connection.
  client.end(text, () => client.destroy());
}

function ask(
  incoming: IncomingMessage,
  arrival: Arrival,
  tunnel: TunnelStream,
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

/** Returns the status line and the headers for the visitor. */
function headOf({ type, response }: Answer, rules: ForwardRules): string {
  const pairs = responseHeaders(response, rules);
  if (type === "upgrade") pairs.push("Connection", "Upgrade", "Upgrade", response.headers.upgrade ?? "");
  // Without a length, the end of the connection ends the body; Node has decoded a chunked one.
  else pairs.push("Connection", "close");
  let text = `HTTP/1.1 ${response.statusCode} ${response.statusMessage ?? ""}\r\n`;
  for (let index = 0; index + 1 < pairs.length; index += 2)
    text += `${pairs[index]}: ${pairs[index + 1]}\r\n`;
  return `${text}\r\n`;
}
