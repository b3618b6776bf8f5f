import type { Random } from "@forage/common/random";
import { UpdateNodeRequest } from "@forage/proto/forage/operator/v1/operator";
import { updateNode } from "../../coordinator/src/api/operator/update-node.ts";
import { whatIsOpen } from "./convergence.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

const TAINT = { key: "sim.example/tolerated", value: "", effect: "NoExecute" };
const TOLERATED_SECONDS = 120;
const TOLERATED_MS = TOLERATED_SECONDS * 1_000;
/** The delay by which a loaded coordinator may evict. */
const LATE_MS = 10_000;
const LOOK_MS = 500;
const CALL_LIMIT_MS = 60_000;
const REST_MS = 10 * 60_000;
const REPORTS = 3;

/** The toleration of pods that stay on a tainted node for a time. */
export const TOLERATION = {
  key: TAINT.key,
  operator: "Exists",
  effect: TAINT.effect,
  tolerationSeconds: BigInt(TOLERATED_SECONDS),
};

/**
 * Taints a node, and sets the coordinator's wall clock while the pods there still tolerate the taint. They must leave
 * when the toleration ends, neither earlier nor later, and no other pod may leave.
 */
export async function playTaint(world: World, random: Random, clockJumpMs: number): Promise<void> {
  const { nodes, rules, time, coordinator } = world;
  const node = random.pick(nodes.filter(({ pods }) => pods.size > 0));
  const uids = new Set(rules.state.podsOnNode(node.name).map(({ record }) => record.uid));
  const beganMs = time.nowMs();
  change(world, node.name, { setTaints: [TAINT] });
  await until(world, CALL_LIMIT_MS, () => rules.state.node(node.name)?.record.taints.length === 1);
  const jumpMs = 1_000 + random.below(TOLERATED_MS - 2_000);
  time.schedule(jumpMs, () => {
    coordinator.gate.wallJumpMs += clockJumpMs;
  });
  // The taints of a node are evaluated again when something of the node changes.
  for (let report = 0; report < REPORTS; report++)
    time.schedule(jumpMs + random.below(TOLERATED_MS - jumpMs), () => node.reportAgain());
  const leaving = (): readonly string[] =>
    rules.state.pods().flatMap(({ record }) => (record.stoppingSince === undefined ? [] : [record.uid]));
  while (time.nowMs() < beganMs + TOLERATED_MS - LOOK_MS) {
    await pass(world, LOOK_MS);
    const [uid] = leaving();
    if (uid !== undefined)
      throw new Violation(`pod ${uid} is to stop ${time.nowMs() - beganMs} ms after its node was tainted`);
  }
  await pass(world, LOOK_MS + LATE_MS);
  const gone = new Set(leaving());
  for (const { record } of rules.state.podsOnNode(node.name))
    if (uids.has(record.uid) && !gone.has(record.uid))
      throw new Violation(`pod ${record.uid} stays though it tolerates the taint no longer`);
  change(world, node.name, { removeTaints: [TAINT] });
  await until(world, REST_MS, () => rules.state.node(node.name)?.record.taints.length === 0);
  await until(world, REST_MS, () => whatIsOpen(world) === undefined);
}

function change(
  { clients }: World,
  name: string,
  changed: Parameters<typeof UpdateNodeRequest.fromPartial>[0],
): void {
  const request = UpdateNodeRequest.fromPartial({ name, ...changed });
  clients.call(name, `update of ${name}`, ({ core }) => updateNode(request, core.services.operator));
}

async function until(world: World, limitMs: number, holds: () => boolean): Promise<void> {
  for (const endMs = world.time.nowMs() + limitMs; !holds(); ) {
    if (world.time.nowMs() >= endMs) throw new Violation(`no rest: ${whatIsOpen(world)}`);
    await pass(world, LOOK_MS);
  }
}

async function pass(world: World, ms: number): Promise<void> {
  const { time } = world;
  await time.runUntil(time.nowMs() + ms, () => world.violation !== undefined);
  if (world.violation !== undefined) throw world.violation;
}
