import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { clusterMetrics } from "./cluster-metrics.ts";

test("shows which coordinator leads since when, and how many members of etcd answer", async () => {
  const registry = new Registry();
  let leader: { name: string; sinceMs?: number } | undefined = { name: "c1", sinceMs: 1_500 };
  const members = async () => [{ type: "up" }, { type: "down" }, { type: "up" }] as const;
  clusterMetrics({ leader: () => leader, members }, [registry]);
  const text = await registry.metrics();
  assert.match(text, /^forage_coordinator_leads_since_seconds\{coordinator="c1"\} 1.5$/m);
  assert.match(text, /^forage_etcd_members\{answers="true"\} 2$/m);
  assert.match(text, /^forage_etcd_members\{answers="false"\} 1$/m);
  leader = { name: "c2" };
  assert.doesNotMatch(await registry.metrics(), /coordinator="/, "an earlier version wrote no time");
});
