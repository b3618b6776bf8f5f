import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { test } from "node:test";
import { GetDestination } from "@forage/proto/destination";
import { pino } from "pino";
import { State } from "../state/state.ts";
import { Directory } from "./directory.ts";
import { startPlainDestination } from "./plain-listener.ts";

test("a client that has stopped reading doesn't hold up the end", { timeout: 60_000 }, async (t) => {
  const directory = new Directory({
    state: new State(),
    domain: "cluster.local",
    virtualIps: () => [],
    defer: (run) => setImmediate(run),
  });
  const stopping = new AbortController();
  const listener = await startPlainDestination(
    { host: "127.0.0.1", port: 0 },
    { directory, authorize: false },
    {
      identify: () => ({ kind: "anonymous" }),
      log: pino({ level: "silent" }),
      stopping: stopping.signal,
      monotonicMs: () => 0,
    },
    {},
  );
  const session = connect(`http://127.0.0.1:${listener.address.port}`, {
    settings: { initialWindowSize: 0 },
  });
  session.on("error", () => undefined);
  t.after(() => session.destroy());
  const call = session.request({
    ":method": "POST",
    ":path": "/io.linkerd.proxy.destination.Destination/Get",
    "content-type": "application/grpc",
    te: "trailers",
  });
  call.on("error", () => undefined);
  const request = { scheme: "", path: "web.shop.svc.cluster.local", contextToken: "" };
  const bytes = GetDestination.encode(request).finish();
  const header = Buffer.alloc(5);
  header.writeUInt32BE(bytes.length, 1);
  call.end(Buffer.concat([header, bytes]));
  await once(call, "response");
  const gone = new Promise((resolve) => session.once("close", resolve));
  stopping.abort();
  await listener.close(50);
  await gone;
  assert.equal(directory.board.size.readers, 0);
  directory.close();
});
