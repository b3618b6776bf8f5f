import assert from "node:assert/strict";
import { Duplex, PassThrough } from "node:stream";
import { test } from "node:test";
import {
  type AgentServiceClient,
  type ServeRequest,
  type SessionEnd,
  SessionRequest,
} from "@forage/proto/forage/agent/v1/agent";
import { type SessionHost, SessionServer } from "./session-server.ts";

test("rejects a session beyond the limit, and accepts one again after another has ended", {
  timeout: 20_000,
}, async () => {
  const server = new SessionServer(aHost());
  const sessions = Array.from({ length: 256 }, () => open(server));
  const refused = await open(server).outcome;
  assert.match(refused.error, /256 sessions are open/);
  await settled();
  assert.equal(server.count, 256);

  sessions[0]?.leave();
  await sessions[0]?.outcome;
  await settled();
  assert.equal(server.count, 255);

  const again = open(server);
  await settled();
  assert.equal(again.ended, false);
  server.close();
  await Promise.all([again.outcome, ...sessions.map(({ outcome }) => outcome)]);
  await settled();
  assert.equal(server.count, 0);
});

test("connections to ports of one pod leave room for other sessions", async () => {
  const server = new SessionServer(aHost());
  const forwards = Array.from({ length: 129 }, () => open(server, { podUid: "p1", kind: PORT_FORWARD }));
  assert.match((await forwards[128]?.outcome)?.error ?? "", /128 connections to ports of this pod are open/);
  const others = [open(server, { podUid: "p2", kind: PORT_FORWARD }), open(server, { podUid: "p1" })];
  await settled();
  assert.deepEqual(
    others.map(({ ended }) => ended),
    [false, false],
  );
  server.close();
});

test("a port-forward ends when its pod gets another network, and other sessions continue", {
  timeout: 20_000,
}, async () => {
  const places = new Map([
    ["p1", "netns-1"],
    ["p2", "netns-2"],
  ]);
  const server = new SessionServer(aHost({ networkOf: (uid) => places.get(uid) }));
  const forwards = ["p1", "p2"].map((podUid) => open(server, { podUid, kind: PORT_FORWARD }));
  const log = open(server);

  server.podChanged("p1");
  await settled();
  assert.deepEqual(
    [...forwards, log].map(({ ended }) => ended),
    [false, false, false],
  );

  places.set("p1", "netns-3");
  server.podChanged("p2");
  server.podChanged("p1");

  assert.match((await forwards[0]?.outcome)?.error ?? "", /the pod no longer exists/);
  assert.deepEqual([forwards[1]?.ended, log.ended], [false, false]);
  server.close();
});

test("stopping the agent ends every session with the reason", async () => {
  const server = new SessionServer(aHost());
  const session = open(server);
  server.close();
  assert.match((await session.outcome).error, /the agent is stopping/);
});

const LOGS = {
  $case: "logs",
  value: { follow: true, previous: false, timestamps: false, stream: "" },
} as const;
const PORT_FORWARD = { $case: "portForward", value: { port: 80 } } as const;

/** A host with endless logs and with ports that accept connections. */
function aHost(change: Partial<SessionHost> = {}): SessionHost {
  const unused = (): never => {
    throw new Error("not used");
  };
  return {
    find: () => ({ container: "web", attempt: 1, id: "c1" }),
    networkOf: () => "netns-1",
    readLog: async function* (_of, _options, signal) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      yield* [];
    },
    exec: unused,
    openInput: unused,
    exitCodeOf: unused,
    nowMs: () => 0,
    dial: async () => new PassThrough(),
    copy: unused,
    sftp: unused,
    images: { push: unused, remove: unused },
    imageReads: { send: unused },
    pullImage: unused,
    support: unused,
    examine: unused,
    ...change,
  };
}

function open(
  server: SessionServer,
  { podUid = "p1", kind = LOGS }: { podUid?: string; kind?: typeof LOGS | typeof PORT_FORWARD } = {},
): FakeStream {
  const stream = new FakeStream();
  const client = { serve: () => stream } as unknown as AgentServiceClient;
  server.open(SessionRequest.fromPartial({ sessionId: "s", podUid, container: "web", kind }), client);
  return stream;
}

/** The agent's stream to the coordinator. The client sends nothing until it disconnects. */
class FakeStream extends Duplex {
  readonly #end = Promise.withResolvers<SessionEnd>();
  /** The agent's last frame. */
  readonly outcome = this.#end.promise;
  ended = false;

  constructor() {
    super({ objectMode: true });
  }

  override _read(): void {}

  override _write({ frame }: ServeRequest, _encoding: string, done: () => void): void {
    if (frame?.$case === "end") {
      this.ended = true;
      this.#end.resolve(frame.value);
    }
    done();
  }

  leave(): void {
    this.push(null);
  }
}

/** Waits for everything that needs neither input nor time. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
