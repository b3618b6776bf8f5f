import assert from "node:assert/strict";
import { test } from "node:test";
import type { Caller } from "../rpc/caller.ts";
import type { IdentifiedSession } from "./guard.ts";
import { MAX_STREAMS, MAX_STREAMS_OF_SESSION, Streams } from "./streams.ts";

const caller: Caller = { type: "user", name: "token:a", grants: [], tokenId: "a" };

function aSession(of: Caller = caller): IdentifiedSession & { readonly ending: AbortController } {
  const ending = new AbortController();
  return { caller: of, ending, session: { tokenId: "a", key: "0a", signal: ending.signal } };
}

function someStreams() {
  const stopping = new AbortController();
  const lapses = new Set<() => void>();
  const tokens = {
    watch: (_: Caller, lapse: (error: never) => void) => {
      const run = (): void => lapse(undefined as never);
      lapses.add(run);
      return () => lapses.delete(run);
    },
  };
  return { streams: new Streams({ tokens, stopping: stopping.signal }), stopping, lapses };
}

test("limits the streams of one session, and releases a slot only once", () => {
  const { streams } = someStreams();
  const gone = new AbortController().signal;
  const [mine, other] = [aSession(), aSession()];
  const open = Array.from({ length: MAX_STREAMS_OF_SESSION }, () => streams.begin(mine, gone));
  assert.throws(() => streams.begin(mine, gone), { code: "RESOURCE_EXHAUSTED" });
  streams.begin(other, gone);
  open[0]?.end();
  open[0]?.end();
  assert.equal(streams.open, MAX_STREAMS_OF_SESSION);
  streams.begin(mine, gone);
  assert.throws(() => streams.begin(mine, gone), { code: "RESOURCE_EXHAUSTED" });
});

test("limits the streams of all sessions, so that health and metrics still get slots", () => {
  const { streams } = someStreams();
  const gone = new AbortController().signal;
  for (let count = 0; count < MAX_STREAMS; count++)
    streams.begin(aSession({ ...caller, name: `token:${count}` }), gone);
  assert.throws(() => streams.begin(aSession(), gone), { code: "RESOURCE_EXHAUSTED" });
});

test("ends a stream with its client, its session, its token and the server", () => {
  for (const end of ["client", "session", "token", "server"] as const) {
    const { streams, stopping, lapses } = someStreams();
    const gone = new AbortController();
    const session = aSession();
    const stream = streams.begin(session, gone.signal);
    assert.equal(stream.signal.aborted, false);
    if (end === "client") gone.abort();
    if (end === "session") session.ending.abort();
    if (end === "server") stopping.abort();
    if (end === "token") for (const lapse of [...lapses]) lapse();
    assert.equal(stream.signal.aborted, true, end);
    stream.end();
    assert.deepEqual([streams.open, lapses.size], [0, 0], end);
  }
});
