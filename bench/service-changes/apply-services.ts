import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  ApplyResourcesRequest,
  type ApplyResourcesResponse,
  ForageServiceClient,
  RolloutStatus,
} from "@forage/proto/forest/v1/forage";
import type { CoordinatorProcess } from "../fleet/coordinator-process.ts";

export interface ServiceCounts {
  readonly services: number;
  /** The number of endpoints of each service. */
  readonly endpoints: number;
  /** Whether the services have client affinity. */
  readonly affinity: boolean;
}

/** Chosen for requests of about a hundred resources, close to their maximum. */
const PAIRS_PER_REQUEST = 50;

/** Applies that many services, each with its own workload. Resolves when all their pods are ready. */
export async function applyServices(
  { address, caPem, token }: CoordinatorProcess,
  counts: ServiceCounts,
): Promise<void> {
  const forage = new ForageServiceClient(address, channelCredentials({ caPem }));
  const metadata = bearerMetadata(token);
  try {
    for (let from = 0; from < counts.services; from += PAIRS_PER_REQUEST) {
      const request = requestFor(from, Math.min(from + PAIRS_PER_REQUEST, counts.services), counts);
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

function requestFor(from: number, to: number, { endpoints, affinity }: ServiceCounts): ApplyResourcesRequest {
  const container = {
    name: "main",
    image: "registry.example/app:v1",
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    resources: { requests: { cpu: "10m", memory: "16Mi" } },
  };
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  const names = Array.from({ length: to - from }, (_, index) => `s${from + index}`);
  return ApplyResourcesRequest.fromPartial({
    applyId: `bench-${from}`,
    namespace: "bench",
    resources: names.flatMap((name) => [
      {
        name,
        spec: { $case: "containerService" as const, value: { scaling: { replicas: endpoints }, container } },
      },
      {
        name,
        spec: {
          $case: "service" as const,
          value: { target: name, ports, sessionAffinity: affinity ? "ClientIP" : "" },
        },
      },
    ]),
  });
}
