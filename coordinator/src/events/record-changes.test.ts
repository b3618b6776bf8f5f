import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { aNode, aPod } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { poison } from "../../test/support/poison.ts";
import { recordChanges } from "./record-changes.ts";

test("logs a change without a readable description once, and records the events of others", () => {
  const fed = new HandFedState({ nodes: [aNode({ name: "n1" })] });
  // This listener runs before the recorder.
  fed.state.subscribe((changes) => {
    for (const { type, after } of changes)
      if (type === "pod" && after?.record.name === "poison") poison(after, "status");
  });
  const recorded: string[] = [];
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  recordChanges(
    fed.state,
    { record: ({ kind, name, reason }) => void recorded.push(`${kind} ${name} ${reason}`) },
    log,
  );
  const put = () => fed.put({ pods: ["a", "poison", "z"].map((name) => aPod({ name })) });
  put();
  assert.deepEqual(recorded, ["pod a Scheduled", "pod z Scheduled"]);
  put();
  const failed = lines.filter((line) => line.includes("object-failed"));
  assert.equal(failed.length, 1);
  assert.match(failed[0] ?? "", /"loop":"events","kind":"pod".*poison/);
});
