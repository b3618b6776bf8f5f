import type { ClusterWorld } from "./cluster-world.ts";
import type { SimMember } from "./sim-member.ts";

/**
 * Causes one fault of a coordinator, of its connections or of etcd, or none. The fault ends after some seconds, mostly
 * before the next one.
 */
export function disturbCluster(world: ClusterWorld): void {
  const { random, clusterRules, members, trace, etcd, time } = world;
  // Most faults concern the leader.
  const member = random.chance(0.7) ? (clusterRules.leader ?? random.pick(members)) : random.pick(members);
  const forMs = 500 + random.below(random.chance(0.7) ? 12_000 : 40_000);
  const choice = random.next();
  clusterRules.disturbed();
  if (choice < 0.25) member.kill();
  else if (choice < 0.45) stall(world, member, forMs);
  else if (choice < 0.65) cut(world, member, forMs);
  else if (choice < 0.75) {
    trace.add("world", `agents don't reach ${member.name} for ${forMs} ms`);
    world.cutAgents(member, forMs);
  } else if (choice < 0.85) lose(world, member, forMs);
  else if (choice < 0.9) {
    trace.add("world", `etcd answers nothing for ${forMs} ms`);
    etcd.up = false;
    time.schedule(forMs, () => {
      clusterRules.disturbed();
      etcd.up = true;
    });
  }
}

function stall(
  { time, trace, random, nodes, clusterRules }: ClusterWorld,
  { gate, name }: SimMember,
  forMs: number,
): void {
  if (gate.held) return;
  trace.add("world", `${name} is held up for ${forMs} ms`);
  gate.hold(random.chance(0.3));
  for (const node of nodes) node.losePatience(() => !gate.held);
  time.schedule(forMs, () => {
    clusterRules.disturbed();
    gate.release();
  });
}

function cut({ time, trace, clusterRules }: ClusterWorld, { way, name }: SimMember, forMs: number): void {
  trace.add("world", `${name} is cut off from etcd for ${forMs} ms`);
  way.cut = true;
  time.schedule(forMs, () => {
    clusterRules.disturbed();
    way.cut = false;
  });
}

/** Delays messages between the coordinator and etcd, and loses some of them. */
function lose(
  { time, trace, random, clusterRules }: ClusterWorld,
  { way, name }: SimMember,
  forMs: number,
): void {
  trace.add("world", `${name} loses messages for ${forMs} ms`);
  Object.assign(way, { latencyMs: random.pick([50, 300, 1_000]), lossShare: random.pick([0, 0.05, 0.2]) });
  time.schedule(forMs, () => {
    clusterRules.disturbed();
    Object.assign(way, { latencyMs: 5, lossShare: 0 });
  });
}
