import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod, type PodFields } from "../../test/support/entries.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { keysOf } from "./change-keys.ts";

const NODES: Readonly<Record<string, { readonly address: string; readonly addresses: readonly string[] }>> = {
  a: { address: "192.0.2.1", addresses: ["192.0.2.1", "2001:db8::1"] },
  b: { address: "192.0.2.2", addresses: [] },
};
/** The part of the view that is read. */
const VIEW = {
  node: (name: string) => (name in NODES ? { report: { report: NODES[name] } } : undefined),
} as unknown as ClusterView;
const WORKLOAD = "workload/shop/container_service/web";
const [ON_A, ON_A_TOO, ON_B] = ["192.0.2.1", "2001:db8::1", "192.0.2.2"].map(keyOf);

function keyOf(ip: string): string {
  return `address/${{ "192.0.2.1": "4/3221225985", "192.0.2.2": "4/3221225986" }[ip] ?? "6/2306139568115548160/1"}`;
}

for (const [what, before, after, expected] of [
  ["is created", undefined, {}, [WORKLOAD]],
  ["is bound", { node: "" }, { node: "a" }, [WORKLOAD, ON_A, ON_A_TOO]],
  [
    "becomes ready",
    { node: "a", status: {} },
    { node: "a", status: { ready: true } },
    [WORKLOAD, ON_A, ON_A_TOO],
  ],
  ["moves", { node: "a" }, { node: "b" }, [WORKLOAD, ON_A, ON_A_TOO, ON_B]],
  ["loses its node", { node: "b" }, { node: "" }, [WORKLOAD, ON_B]],
  ["is removed", { node: "b" }, undefined, [WORKLOAD, ON_B]],
  [
    "changes its address",
    { node: "", status: { podIp: "192.0.2.1" } },
    { node: "", status: { podIp: "192.0.2.2" } },
    [WORKLOAD, ON_A, ON_B],
  ],
  [
    "loses one of two addresses",
    { node: "", status: { podIp: "192.0.2.2", podIps: ["192.0.2.2", "192.0.2.1"] } },
    { node: "", status: { podIp: "192.0.2.2", podIps: ["192.0.2.2"] } },
    [WORKLOAD, ON_A, ON_B],
  ],
  ["loses its status", { node: "", status: { podIp: "192.0.2.2" } }, { node: "" }, [WORKLOAD, ON_B]],
  ["changes its workload", { workload: "old" }, {}, [WORKLOAD, "workload/shop/container_service/old"]],
] as const satisfies readonly (readonly [string, PodFields | undefined, PodFields | undefined, unknown])[])
  test(`names everything that depends on a pod that ${what}`, () => {
    const [was, is] = [before, after].map((fields) => fields && aPod(fields));
    const keys = keysOf([{ type: "pod", before: was, after: is }], VIEW);
    assert.deepEqual([...keys].toSorted(), [...expected].toSorted());
  });
