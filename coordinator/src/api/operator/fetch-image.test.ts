import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeStatusRecord } from "@forage/proto/forage/store/v1/store";
import { aNode } from "../../../test/support/entries.ts";
import type { NodeEntry } from "../../state/entries.ts";
import { chooseSources } from "./fetch-image.ts";

const IMAGE = "registry.example/team/app:v1";
const ZONE = "topology.kubernetes.io/zone";

test("an image comes from other Ready nodes that report it, those of the node's own zone first", () => {
  const nodes = [
    holding("n1"),
    holding("n2", { zone: "b" }),
    holding("n3", { zone: "a" }),
    holding("n4", { ready: false }),
    holding("n5", { images: [] }),
    unreported("n6"),
  ];
  assert.deepEqual(sourcesOf(nodes), ["n3", "n2"]);
  assert.deepEqual(sourcesOf(nodes, ["n2", "n4"]), ["n2"]);
  assert.deepEqual(sourcesOf(nodes, []), []);
});

function sourcesOf(nodes: readonly NodeEntry[], trusted?: readonly string[]): readonly string[] {
  const state = { nodes: () => [...nodes], node: (name: string) => nodes.find((it) => it.name === name) };
  return chooseSources("n1", IMAGE, state, trusted);
}

function holding(
  name: string,
  { zone = "a", ready = true, images = [IMAGE] }: { zone?: string; ready?: boolean; images?: string[] } = {},
): NodeEntry {
  const node = aNode({ name, ready, labels: { [ZONE]: zone } });
  return { ...node, report: NodeStatusRecord.fromPartial({ name, report: { images } }) };
}

/** A node that has never connected. */
function unreported(name: string): NodeEntry {
  return { ...aNode({ name }), report: undefined };
}
