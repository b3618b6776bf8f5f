import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { Hello, LogOptions, type SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { pino } from "pino";
import { aNode } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { Sessions } from "./sessions.ts";

test("the newest session of a node replaces the older one, whose end changes nothing", (t) => {
  const sessions = start(t);
  const first = sessions.open("n1", Hello.fromPartial({ sessionId: "first" }));
  const second = sessions.open("n1", Hello.fromPartial({ sessionId: "second" }));
  assert.deepEqual([first.ended.signal.aborted, second.ended.signal.aborted], [true, false]);

  sessions.close(first);
  assert.equal(sessions.connected("n1"), true);
  sessions.close(second);
  assert.equal(sessions.connected("n1"), false);
});

test("no more than 64 log and exec requests wait for an agent that takes none", (t) => {
  const sessions = start(t);
  const logs = { $case: "logs", value: LogOptions.fromPartial({}) } as const;
  const request: SessionRequest = { sessionId: "s", podUid: "p1", container: "", kind: logs };
  assert.throws(() => sessions.request("n1", request), { code: "UNAVAILABLE" });
  const session = sessions.open("n1", Hello.fromPartial({}));
  for (let count = 0; count < 64; count++) sessions.request("n1", request);
  assert.throws(() => sessions.request("n1", request), { code: "RESOURCE_EXHAUSTED" });
  session.requests.splice(0);
  sessions.request("n1", request);
});

function start(t: TestContext): Sessions {
  const { state } = new HandFedState({ nodes: [aNode({ name: "n1" })] });
  const log = pino({ level: "silent" });
  const sessions = new Sessions({ state, clock: new VirtualClock(), log, heartbeatIntervalMs: 2_500 });
  t.after(() => sessions.stop());
  return sessions;
}
