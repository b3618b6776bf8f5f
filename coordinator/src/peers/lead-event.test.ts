import assert from "node:assert/strict";
import { test } from "node:test";
import { leadEvent } from "./lead-event.ts";

test("names the leader, and whether it was a follower before", () => {
  const own = { name: "c2", addresses: ["10.0.0.2:7600", "c2.example:7600"] };
  assert.deepEqual(leadEvent(own, { hasFollowed: false }), {
    ...{ namespace: "", kind: "coordinator", name: "c2", type: "Normal", reason: "LeadTaken" },
    message: "the coordinator at 10.0.0.2:7600 leads since its start",
  });
  const { message } = leadEvent(own, { hasFollowed: true });
  assert.equal(message, "the coordinator at 10.0.0.2:7600 leads and has followed another coordinator before");
  assert.match(leadEvent({ name: "c2", addresses: [] }, { hasFollowed: true }).message, /an unknown address/);
});
