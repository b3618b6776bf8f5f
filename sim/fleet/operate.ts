import {
  DrainNodeRequest,
  UpdateNodeRequest,
  UpdateRolloutRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { drainNode } from "../../coordinator/src/api/operator/drain-node.ts";
import { updateNode } from "../../coordinator/src/api/operator/update-node.ts";
import { updateRollout } from "../../coordinator/src/api/operator/update-rollout.ts";
import { NAMESPACE, type Script } from "./script.ts";
import type { World as WholeWorld } from "./world.ts";

type World = Pick<WholeWorld, "random" | "clients" | "trace" | "nodes">;

type Action = NonNullable<UpdateRolloutRequest["action"]>;

/** Does one thing that operators do, or nothing. */
export function operate(world: World, script: Script): void {
  const { random, clients, trace } = world;
  const choice = random.next();
  if (choice < 0.5) {
    const { bundle, request, what } = script.change();
    trace.add("user", `${request.applyId} ${what}`);
    clients.apply(bundle, request);
  } else if (choice < 0.54) {
    const bundle = script.anyBundle();
    script.forget(bundle);
    trace.add("user", `deletes ${bundle}`);
    clients.delete(bundle, NAMESPACE, script.labelsOf(bundle));
  } else if (choice < 0.66) {
    const name = script.anyService();
    if (name !== undefined) changeRollout(world, script, name, anAction(world));
  } else if (choice < 0.73) {
    const node = random.pick(world.nodes).name;
    changeNode(world, node, aNodeChange(world));
  } else if (choice < 0.76) drain(world, random.pick(world.nodes).name);
}

/** Reverts everything that operators had paused or drained. */
export function putRight(world: World, script: Script): void {
  for (const name of script.services()) changeRollout(world, script, name, { $case: "resume", value: {} });
  for (const { name } of world.nodes)
    changeNode(world, name, { unschedulable: false, removeTaints: [{ key: TAINT_KEY }] });
}

const TAINT_KEY = "sim.example/away";

function anAction({ random }: World): Action {
  return random.pick<Action>([
    { $case: "undo", value: { toRevision: 0 } },
    { $case: "restart", value: {} },
    { $case: "pause", value: {} },
    { $case: "resume", value: {} },
    { $case: "promote", value: {} },
  ]);
}

function aNodeChange({ random }: World): Parameters<typeof UpdateNodeRequest.fromPartial>[0] {
  const effect = random.pick(["NoSchedule", "NoExecute"]);
  return random.pick<Parameters<typeof UpdateNodeRequest.fromPartial>[0]>([
    { unschedulable: true },
    { unschedulable: false },
    { setTaints: [{ key: TAINT_KEY, value: "", effect }] },
    { removeTaints: [{ key: TAINT_KEY }] },
  ]);
}

const SIM_USER = { type: "user", name: "sim", grants: [{ role: "admin", namespaces: "*" }] } as const;

function changeRollout(world: World, script: Script, name: string, action: Action): void {
  world.trace.add("user", `${action.$case} of ${name}`);
  const request = UpdateRolloutRequest.fromPartial({
    namespace: NAMESPACE,
    kind: "container_service",
    name,
    action,
  });
  world.clients.call(script.bundleOf(name), `${action.$case} ${name}`, (coordinator) =>
    updateRollout(request, SIM_USER, coordinator.core.services.operator),
  );
}

function changeNode(
  world: World,
  name: string,
  change: Parameters<typeof UpdateNodeRequest.fromPartial>[0],
): void {
  world.trace.add("user", `node ${name}: ${JSON.stringify(change)}`);
  const request = UpdateNodeRequest.fromPartial({ name, ...change });
  world.clients.call(name, `update of ${name}`, (coordinator) =>
    updateNode(request, coordinator.core.services.operator),
  );
}

function drain(world: World, name: string): void {
  world.trace.add("user", `drains ${name}`);
  const request = DrainNodeRequest.fromPartial({ name, force: world.random.chance(0.3) });
  world.clients.call(name, `drain of ${name}`, ({ core }) => {
    const { operator } = core.services;
    return drainNode(request, operator);
  });
}
