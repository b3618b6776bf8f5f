import assert from "node:assert/strict";
import { test } from "node:test";
import { type HttpRequest, HttpRequestHead } from "@forage/proto/forage/coordinator/v1/coordinator";
import { type ServedConnection, serveConnection } from "./serve-connection.ts";

const LIMIT = { timeout: 60_000 };

test("fails if the port ends the connection with an error", LIMIT, async () => {
  // A port adds its error handler only with the first bytes.
  const { parts } = await serve((connection) => void connection.destroy(new Error("no room")));
  await assert.rejects(parts.next(), { code: "ERR_STREAM_PREMATURE_CLOSE" });
  assert.equal((await parts.next()).done, true);
});

test("fails if the port cuts the connection off before its bytes have been passed on", LIMIT, async () => {
  const { parts } = await serve((connection) => void connection.destroy());
  await assert.rejects(parts.next(), { message: "the connection was cut off" });
});

test("passes on what the port has written before it ended the connection, and closes it", LIMIT, async () => {
  const { parts, accepted } = await serve((connection) => void connection.end("beans"));
  const { value } = await parts.next();
  assert.equal(String(value?.part?.$case === "body" && value.part.value), "beans");
  assert.equal((await parts.next()).done, true);
  assert.equal(accepted()?.destroyed, true);
});

test("closes the port's connection when the call is aborted", LIMIT, async () => {
  const { parts, accepted, abort } = await serve(() => undefined);
  const next = parts.next();
  abort.abort();
  await assert.rejects(next, { code: "ERR_STREAM_PREMATURE_CLOSE" });
  assert.equal(accepted()?.destroyed, true);
});

/** Serves a connection on which the client sends nothing, up to the head of the response. */
async function serve(accept: (connection: ServedConnection) => void) {
  let connection: ServedConnection | undefined;
  const abort = new AbortController();
  const head = HttpRequestHead.fromPartial({ method: "CONNECT" });
  const parts = serveConnection(head, silent(), abort.signal, (accepted) => {
    connection = accepted;
    accept(accepted);
  });
  const first = await parts.next();
  assert.equal(first.value?.part?.$case, "head");
  return { parts, abort, accepted: () => connection };
}

async function* silent(): AsyncGenerator<HttpRequest> {
  await new Promise(() => undefined);
}
