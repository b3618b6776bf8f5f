import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod, type PodFields } from "../../test/support/entries.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { AddressIndex } from "./address-index.ts";

const [ONE, TWO, THREE] = ["192.0.2.1", "192.0.2.2", "2001:db8::3"] as const;

for (const [what, changed, expected] of [
  ["reports nothing new", { status: { podIp: ONE } }, [ONE]],
  ["becomes ready", { status: { podIp: ONE, ready: true } }, [ONE]],
  ["moves to another address", { status: { podIp: TWO } }, [TWO]],
  ["gets a second address", { status: { podIp: ONE, podIps: [ONE, THREE] } }, [ONE, THREE]],
  ["loses its address", { status: { podIp: "" } }, []],
  ["loses its status", {}, []],
  ["is removed", undefined, []],
] as const satisfies readonly (readonly [string, PodFields | undefined, readonly string[]])[])
  test(`finds the newest entry of a pod that ${what}, by its present addresses only`, () => {
    const before = aPod({ status: { podIp: ONE } });
    const index = new AddressIndex({ pods: () => [before], nodes: () => [] } as unknown as ClusterView);
    assert.deepEqual(index.podsAt(ONE), [before]);
    const after = changed && aPod(changed);
    index.apply([{ type: "pod", before, after }]);
    for (const ip of [ONE, TWO, THREE]) {
      const found = index.podsAt(ip);
      assert.equal(found.length, (expected as readonly string[]).includes(ip) ? 1 : 0, ip);
      for (const entry of found) assert.equal(entry, after);
    }
  });

test("finds a pod that was added later", () => {
  const index = new AddressIndex({ pods: () => [], nodes: () => [] } as unknown as ClusterView);
  const after = aPod({ status: { podIp: ONE } });
  index.apply([{ type: "pod", before: undefined, after }]);
  assert.deepEqual(index.podsAt(ONE), [after]);
});

test("finds a pod whose address arrives after the pod, and not after its removal", () => {
  const index = new AddressIndex({ pods: () => [], nodes: () => [] } as unknown as ClusterView);
  const [created, bound, started] = [aPod({}), aPod({ node: "n1" }), aPod({ status: { podIp: ONE } })];
  index.apply([{ type: "pod", before: undefined, after: created }]);
  index.apply([{ type: "pod", before: created, after: bound }]);
  assert.deepEqual(index.podsAt(ONE), []);
  index.apply([{ type: "pod", before: bound, after: started }]);
  assert.deepEqual(index.podsAt(ONE), [started]);
  index.apply([{ type: "pod", before: started, after: undefined }]);
  assert.deepEqual(index.podsAt(ONE), []);
});
