import type { RolloutEvent, RolloutStatus } from "@forage/proto/forest/v1/forage";
import type { aRollout } from "./builders.ts";
import type { Answers } from "./fake-coordinator.ts";

/** A manifest with a workload and its service. */
export const HELLO = `namespace: shop
labels: {app: web}
resources:
  - name: web
    container_service: {scaling: {replicas: 2}, container: {name: main, image: "registry.example/web:1"}}
  - {name: web, service: {target: web, ports: [{name: http, port: 80}]}}
`;

export function anEvent(value: RolloutStatus, message = ""): RolloutEvent {
  return { resourceKind: "container_service", resourceName: "web", status: value, message };
}

/** Returns answers for a rollout that passes through these states and ends like this. */
export function rollout(states: readonly RolloutEvent[], end: ReturnType<typeof aRollout>): Answers {
  return {
    applyResources: () => ({ rolloutId: "r-1" }),
    watchRollout: (call) => {
      for (const state of states) call.write(state);
      call.end();
    },
    getRollout: () => end,
  };
}
