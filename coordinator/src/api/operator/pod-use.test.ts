import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServeRequest } from "@forage/proto/forage/agent/v1/agent";
import { Channel } from "../../link/channel.ts";
import { PodUse } from "./pod-use.ts";
import { outputOf } from "./sessions.ts";

test("reports a session to observers once, until it ends", () => {
  const uses = new PodUse();
  const open: string[] = [];
  const stop = uses.observe(({ uid }) => {
    open.push(uid);
    return () => void open.splice(open.indexOf(uid), 1);
  });
  uses.observe(() => undefined);
  const [a, b] = [uses.begin({ name: "a", uid: "1" }), uses.begin({ name: "a", uid: "1" })];
  assert.deepEqual(open, ["1", "1"]);
  a();
  a();
  assert.deepEqual(open, ["1"]);
  b();
  stop();
  uses.begin({ name: "a", uid: "1" });
  assert.deepEqual(open, []);
});

for (const [name, error] of [
  ["ends", undefined],
  ["breaks", new Error("the agent's stream broke")],
] as const)
  test(`ends the use of a pod when the session ${name}`, async () => {
    const fromAgent = new Channel<ServeRequest>(1);
    let ended = 0;
    const output = outputOf({ toAgent: new Channel(1), fromAgent, endUse: () => void ended++ });
    const next = output.next();
    assert.equal(ended, 0);
    fromAgent.close(error);
    await next.catch(() => {});
    assert.equal(ended, 1);
  });
