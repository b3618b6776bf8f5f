import {
  ApplyResourcesRequest,
  ForageResource,
  type RolloutEvent,
  RolloutStatus,
  type RouteSpec,
} from "@forage/proto/forest/v1/forage";
import type { World } from "./world.ts";

export function aContainerService(
  name: string,
  overrides: Parameters<typeof ForageResource.fromPartial>[0]["spec"] | object = {},
) {
  const value = {
    scaling: { replicas: 2 },
    container: {
      name: "main",
      image: "registry.example/team/app:v1",
      ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
      resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: undefined },
    },
    ...overrides,
  };
  return ForageResource.fromPartial({ name, spec: { $case: "containerService", value } });
}

export function aJob(name: string, overrides: object = {}): ForageResource {
  const value = { container: { name: "main", image: "registry.example/team/app:v1" }, ...overrides };
  return ForageResource.fromPartial({ name, spec: { $case: "job", value } });
}

export function aService(name: string, target: string): ForageResource {
  const value = { target, ports: [{ name: "http", port: 80, targetPort: 8080 }] };
  return ForageResource.fromPartial({ name, spec: { $case: "service", value } });
}

export function aRoute(name: string, spec: Parameters<typeof RouteSpec.fromPartial>[0] = {}): ForageResource {
  const value = { targetService: "web", ...spec };
  return ForageResource.fromPartial({ name, spec: { $case: "route", value } } as object);
}

export function aRequest(
  applyId: string,
  resources: readonly ForageResource[],
  labels: Record<string, string> = {},
): ApplyResourcesRequest {
  return ApplyResourcesRequest.fromPartial({ applyId, namespace: "shop", resources: [...resources], labels });
}

/** Returns all events until the stream ends, as `kind/name STATUS message`. */
export async function watchToEnd(world: World, rolloutId: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const event of world.forage().watchRollout({ rolloutId })) lines.push(describeEvent(event));
  return lines;
}

export function describeEvent({ resourceKind, resourceName, status, message }: RolloutEvent): string {
  const word = Object.entries(RolloutStatus).find(([, value]) => value === status)?.[0];
  return `${resourceKind}/${resourceName} ${word} ${message}`;
}
