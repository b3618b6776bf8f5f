import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { toTimestamp } from "../model/timestamp.ts";
import type { NodeEntry } from "../state/entries.ts";
import { dependents } from "./dependents.ts";

const NOW_MS = Date.UTC(2030, 0, 1);
const DAY_MS = 86_400_000;

test("lists nodes until they have connected with a certificate of the next authority", () => {
  const nodes = [
    aNode("new", { certificateAuthority: "next", connectedAuthority: "next" }),
    aNode("answer-lost", { certificateAuthority: "next", connectedAuthority: "old" }),
    aNode("old", { certificateAuthority: "old", connectedAuthority: "old" }),
    aNode("of-an-earlier-version", { certificateEnds: undefined }),
    aNode("revoked", { revoked: true }),
    aNode("in-grace", { certificateEnds: toTimestamp(NOW_MS - DAY_MS) }),
    aNode("too-late", { certificateEnds: toTimestamp(NOW_MS - 3 * DAY_MS) }),
  ];
  assert.deepEqual(dependents(nodes, { nextPin: "next", graceMs: 2 * DAY_MS, nowMs: NOW_MS }), [
    "answer-lost",
    "in-grace",
    "of-an-earlier-version",
    "old",
  ]);
});

function aNode(name: string, fields: Partial<NodeRecord>): NodeEntry {
  const certificateEnds = toTimestamp(NOW_MS + DAY_MS);
  const record = NodeRecord.fromPartial({ name, certificateEnds, ...fields });
  return { name, record, revision: 1 } as unknown as NodeEntry;
}
