import assert from "node:assert/strict";
import { test } from "node:test";
import { Metadata, status } from "@grpc/grpc-js";
import { markOfLeader } from "./of-leader.ts";

test("marks only the end of a call whose leader was lost", () => {
  const metadata = new Metadata();
  metadata.set("a", "b");
  const marked = markOfLeader({ code: status.UNAVAILABLE, details: "lost", metadata });
  assert.deepEqual(marked.metadata?.getMap(), { a: "b", "forage-of-leader": "1" });
  assert.deepEqual(markOfLeader({ code: status.UNAVAILABLE }).metadata?.getMap(), {
    "forage-of-leader": "1",
  });
  assert.deepEqual(metadata.getMap(), { a: "b" });
  assert.deepEqual(markOfLeader({ code: status.NOT_FOUND }), { code: status.NOT_FOUND });
});
