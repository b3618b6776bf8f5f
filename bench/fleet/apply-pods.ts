import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  ApplyResourcesRequest,
  type ApplyResourcesResponse,
  ForageServiceClient,
  RolloutStatus,
} from "@forage/proto/forest/v1/forage";
import type { CoordinatorProcess } from "./coordinator-process.ts";

/** The replicas of each service. The cost of one pod's change grows with them, and must not grow with the fleet. */
const REPLICAS = 100;
/** This number is close to the maximum of a request. */
const SERVICES_PER_REQUEST = 100;
const NAMESPACE = "bench";

/**
 * Applies that many pods to a namespace, a hundred of each service and the rest of one more. Resolves when all their
 * rollouts have succeeded.
 */
export async function applyPods(
  coordinator: CoordinatorProcess,
  pods: number,
  namespace = NAMESPACE,
): Promise<void> {
  const { address, caPem, token } = coordinator;
  const forage = new ForageServiceClient(address, channelCredentials({ caPem }));
  const metadata = bearerMetadata(token);
  try {
    for (const request of requestsFor(pods, namespace)) {
      const { rolloutId } = await new Promise<ApplyResourcesResponse>((resolve, reject) =>
        forage.applyResources(request, metadata, (error, response) =>
          error ? reject(error) : resolve(response),
        ),
      );
      for await (const event of forage.watchRollout({ rolloutId }, metadata)) {
        if (event.status === RolloutStatus.FAILED || event.status === RolloutStatus.ROLLED_BACK)
          throw new Error(`${event.resourceName} failed: ${event.message}`);
      }
    }
  } finally {
    forage.close();
  }
}

/** Returns requests for exactly this many pods of a namespace. */
export function requestsFor(pods: number, namespace = NAMESPACE): ApplyResourcesRequest[] {
  const services = Array.from({ length: Math.ceil(pods / REPLICAS) }, (_, index) => ({
    name: `app-${index}`,
    replicas: Math.min(REPLICAS, pods - index * REPLICAS),
  }));
  const requests: ApplyResourcesRequest[] = [];
  for (let from = 0; from < services.length; from += SERVICES_PER_REQUEST)
    requests.push(
      requestFor(namespace, `${namespace}-${from}`, services.slice(from, from + SERVICES_PER_REQUEST)),
    );
  return requests;
}

/**
 * Returns requests for this many services with one pod that fits no node. Their sizes differ, so the scheduler can't
 * treat any two of them alike.
 */
export function requestsForWaiting(pods: number): ApplyResourcesRequest[] {
  const requests: ApplyResourcesRequest[] = [];
  for (let from = 0; from < pods; from += SERVICES_PER_REQUEST) {
    const count = Math.min(SERVICES_PER_REQUEST, pods - from);
    const resources = Array.from({ length: count }, (_, index) => {
      const resources = { requests: { cpu: `${1_000 + from + index}` } };
      const container = { name: "main", image: "registry.example/app:v1", resources };
      const spec = { $case: "containerService" as const, value: { scaling: { replicas: 1 }, container } };
      return { name: `waiting-${from + index}`, spec };
    });
    const applyId = `waiting-${from}`;
    requests.push(ApplyResourcesRequest.fromPartial({ applyId, namespace: "waiting", resources }));
  }
  return requests;
}

interface Service {
  readonly name: string;
  readonly replicas: number;
}

function requestFor(namespace: string, applyId: string, services: readonly Service[]): ApplyResourcesRequest {
  const container = {
    name: "main",
    image: "registry.example/app:v1",
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    resources: { requests: { cpu: "100m", memory: "64Mi" } },
  };
  return ApplyResourcesRequest.fromPartial({
    applyId,
    namespace,
    resources: services.map(({ name, replicas }) => ({
      name,
      spec: { $case: "containerService" as const, value: { scaling: { replicas }, container } },
    })),
  });
}
