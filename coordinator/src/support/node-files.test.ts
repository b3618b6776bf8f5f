import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ServeRequest } from "@forage/proto/forage/agent/v1/agent";
import { aNode } from "../../test/support/entries.ts";
import type { SessionBroker, Tunnel } from "../link/session-broker.ts";
import { chooseNodes, nodeFiles } from "./node-files.ts";

const NODES = [
  aNode({ name: "a" }),
  aNode({ name: "b", ready: false }),
  aNode({ name: "c" }),
  aNode({ name: "d", ready: false }),
];

test("chooses nodes that are not ready first, and names the rest", () => {
  assert.deepEqual(chooseNodes(NODES, [], 3), { chosen: ["b", "d", "a"], rest: ["c"] });
});

test("chooses each requested node once", () => {
  assert.deepEqual(chooseNodes(NODES, ["c", "a", "c"], 1), { chosen: ["c", "a"], rest: [] });
});

const FILE = { path: "version.txt", content: "1", problem: "" };

test("returns the files of an agent that ends without an error, and nothing else", async () => {
  const files = await filesOf([file(FILE), end("")]);
  assert.deepEqual(files, [{ ...FILE, path: "nodes/a/version.txt" }]);
});

test("names the error of an agent, and what is missing when its stream ends early", async () => {
  const problemsOf = async (frames: readonly ServeRequest[]): Promise<string[]> =>
    (await filesOf(frames)).map(({ problem }) => problem ?? "");
  assert.deepEqual(await problemsOf([file(FILE), end("unknown session")]), [
    "",
    "unknown session; agents of older versions send no files",
  ]);
  assert.deepEqual(await problemsOf([file(FILE)]), ["", "the agent's stream ended early"]);
});

function filesOf(frames: readonly ServeRequest[]) {
  const tunnel = {
    toAgent: { close: () => {} },
    fromAgent: (async function* () {
      yield* frames;
    })(),
  };
  const broker: Pick<SessionBroker, "open"> = { open: () => tunnel as unknown as Tunnel };
  return nodeFiles("a", new AbortController().signal, { broker, clock: new VirtualClock() });
}

function file(value: typeof FILE): ServeRequest {
  return ServeRequest.fromPartial({ frame: { $case: "supportFile", value } });
}

function end(error: string): ServeRequest {
  return ServeRequest.fromPartial({ frame: { $case: "end", value: { exitCode: 0, error } } });
}
