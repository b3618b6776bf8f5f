import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type Settings,
} from "node:http2";
import { connect as connectTcp } from "node:net";
import { type TestContext, test } from "node:test";
import { GetDestination } from "@forage/proto/destination";
import { status } from "@grpc/grpc-js";
import { pino } from "pino";
import { encodeHeaders, encodeNumber, encodeSettings, FRAME, PREFACE } from "../http2/frames.ts";
import { REQUEST } from "../http2/test/peer.ts";
import { ClusterView } from "../state/cluster-view.ts";
import { systemClock } from "../time/clock.ts";
import { Directory } from "./directory.ts";
import { type PlainDestination, startPlainDestination } from "./plain-listener.ts";

test("closes although a client has stopped reading", { timeout: 180_000 }, async (t) => {
  const { directory, listener, stopping } = await started(t);
  const session = connectTo(t, listener, { initialWindowSize: 0 });
  const call = callOf(session, "io.linkerd.proxy.destination.Destination/Get");
  const request = { scheme: "", path: "web.shop.svc.cluster.local", contextToken: "" };
  call.end(framed(GetDestination.encode(request).finish()));
  await once(call, "response");
  const gone = new Promise((resolve) => session.once("close", resolve));
  stopping.abort();
  await listener.close(50);
  await gone;
  assert.equal(directory.topics.size.readers, 0);
});

// Only after this answer do proxies continue with profiles instead of policies.
for (const method of ["outbound.OutboundPolicies/Watch", "inbound.InboundServerPolicies/WatchPort"]) {
  test(`answers ${method} with UNIMPLEMENTED`, { timeout: 180_000 }, async (t) => {
    const { listener } = await started(t);
    const call = callOf(connectTo(t, listener), `io.linkerd.proxy.${method}`);
    call.end(framed(Buffer.alloc(0)));
    const [headers] = (await once(call, "response")) as [IncomingHttpHeaders];
    assert.equal(headers["grpc-status"], String(status.UNIMPLEMENTED));
  });
}

test("counts a flood of resets, and accepts the next connection soon", {
  timeout: 60_000,
}, async (t) => {
  const { listener, cuts } = await started(t);
  const attacker = connectTcp(listener.address.port, "127.0.0.1")
    .on("error", () => undefined)
    .resume();
  attacker.write(Buffer.concat([PREFACE, encodeSettings([])]));
  for (let id = 1; id < 801; id += 2)
    attacker.write(
      Buffer.concat([
        encodeHeaders(id, REQUEST, false),
        encodeNumber(FRAME.RST_STREAM, id, constants.NGHTTP2_CANCEL),
      ]),
    );
  await once(attacker, "close");
  assert.deepEqual(cuts, ["RESETS"]);
  const call = callOf(connectTo(t, listener), "io.linkerd.proxy.destination.Destination/Get");
  const request = { scheme: "", path: "web.shop.svc.cluster.local", contextToken: "" };
  call.end(framed(GetDestination.encode(request).finish()));
  await once(call, "response");
});

async function started(t: TestContext) {
  const cuts: string[] = [];
  const directory = new Directory({
    state: new ClusterView(),
    domain: "cluster.local",
    virtualIps: () => [],
    defer: (run) => setImmediate(run),
  });
  const stopping = new AbortController();
  const listener = await startPlainDestination(
    { host: "127.0.0.1", port: 0 },
    { directory, authorize: false },
    {
      schedule: systemClock.schedule,
      log: pino({ level: "silent" }),
      stopping: stopping.signal,
      monotonicMs: systemClock.monotonicMs,
      observeCut: (reason) => cuts.push(reason),
    },
  );
  t.after(async () => {
    await listener.close(0);
    directory.close();
  });
  return { directory, listener, stopping, cuts };
}

function connectTo(
  t: TestContext,
  { address }: PlainDestination,
  settings: Settings = {},
): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${address.port}`, { settings });
  session.on("error", () => undefined);
  t.after(() => session.destroy());
  return session;
}

function callOf(session: ClientHttp2Session, method: string): ClientHttp2Stream {
  const headers = {
    ":method": "POST",
    ":path": `/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
  };
  const call = session.request(headers);
  call.on("error", () => undefined);
  return call;
}

/** Returns the message in gRPC's framing. */
function framed(bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([header, bytes]);
}
