import assert from "node:assert/strict";
import { IMAGE, type LabFleet, REPLICAS } from "./lab-fleet.ts";
import { idleNear, timed } from "./lab-scene.ts";

/** A partition of a host that lasts like an outage of a site's uplink, with the default tolerations of pods. */

const PARTITION_MS = 5 * 60_000;
const HOST = "h3";
/** A pod that stays on this host however long the host is unreachable. */
const STAYS = "far";
const TOLERATION = { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" };

/** Applies a pod that tolerates for ever that its host is unreachable. */
export async function applyTolerating({ scene }: LabFleet): Promise<void> {
  const podConfig = { nodeSelector: { zone: "z3" }, tolerations: [TOLERATION] };
  await scene.apply([idleNear(STAYS, IMAGE, podConfig)]);
  await scene.serving(STAYS, 1);
}

/**
 * Cuts the host off for 5 minutes. Its containers must run all the time, its own agent must restart a killed one, pods
 * without a toleration must be replaced, and after healing only the surplus may end. Returns lines with the durations.
 */
export async function runOnThroughPartition(fleet: LabFleet): Promise<readonly string[]> {
  const { lab, scene } = fleet;
  const [stays] = await scene.serving(STAYS, 1);
  const before = await scene.running(HOST);
  const startMs = performance.now();
  const seconds = (): string => ((performance.now() - startMs) / 1000).toFixed(1);
  await lab.partition([HOST]);
  await scene.until(`${HOST} is Unreachable`, () => fleet.isUnreachable(HOST));
  const lines = [`Unreachable after ${seconds()} s`];
  await fleet.untilReplaced(HOST);
  lines.push(`pods without a toleration are replaced after ${seconds()} s`);
  const victim = before.find((id) => !stays?.containers.includes(id)) ?? "";
  assert.deepEqual(await scene.running(HOST), before);
  const { seconds: restart, ids } = await restartedOnHost(fleet, victim);
  lines.push(`a killed container runs again after ${restart} s`);
  assert.deepEqual(without(ids, before).length, 1);
  assert.deepEqual(without(before, ids), [victim]);
  while (performance.now() - startMs < PARTITION_MS) assert.deepEqual(await scene.running(HOST), ids);
  assert.equal(await fleet.isUnreachable(HOST), true);
  const healed = await timed(async () => {
    await lab.heal();
    await scene.allReady();
    await fleet.onlyTheKnown();
  });
  lines.push(
    `after ${Math.round(PARTITION_MS / 1000)} s of partition, the surplus ended ${healed.seconds} s after healing`,
  );
  await scene.serving("web", REPLICAS);
  const [stayed] = await scene.serving(STAYS, 1);
  assert.deepEqual([stayed?.uid, stayed?.containers], [stays?.uid, stays?.containers]);
  return lines;
}

/** Kills the container on the host. Returns once as many as before run again. */
async function restartedOnHost(
  fleet: LabFleet,
  victim: string,
): Promise<{ readonly seconds: number; readonly ids: readonly string[] }> {
  const { scene } = fleet;
  const count = (await scene.running(HOST)).length;
  await fleet.onHost(HOST, `ctr --namespace forage tasks kill --signal SIGKILL ${victim}`);
  const { value, seconds } = await timed(() =>
    scene.until("its own agent restarts a killed container", async () => {
      const running = await scene.running(HOST);
      return running.length === count && !running.includes(victim) ? running : undefined;
    }),
  );
  return { seconds, ids: value };
}

function without(ids: readonly string[], others: readonly string[]): readonly string[] {
  return ids.filter((id) => !others.includes(id));
}
