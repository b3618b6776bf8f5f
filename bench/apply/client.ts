import { readFileSync } from "node:fs";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { OperatorServiceClient, type Pod } from "@forage/proto/forage/operator/v1/operator";
import {
  ApplyResourcesRequest,
  type ApplyResourcesResponse,
  ForageServiceClient,
  RolloutStatus,
} from "@forage/proto/forest/v1/forage";
import type { System } from "../../hack/system/system.ts";

/** A client of the API within the benchmark's process, so only the system's time is measured. */
export interface BenchClient {
  /** Throws unless the rollout succeeded. */
  applyReplicas(name: string, image: string, replicas: number): Promise<ApplyTimes>;
  pods(): Promise<readonly Pod[]>;
  deleteAll(): Promise<void>;
  close(): void;
}

export interface ApplyTimes {
  /** Seconds from the call until all replicas were reported ready. */
  readonly ready: number;
  /**
   * Seconds from the call to the end of the rollout, which ends a moment later to confirm that the replicas stay ready.
   */
  readonly done: number;
}

const NAMESPACE = "bench";

export function benchClient({ grpc, caFile, tokenFile }: System): BenchClient {
  const credentials = channelCredentials({ caPem: readFileSync(caFile, "utf8") });
  const metadata = bearerMetadata(readFileSync(tokenFile, "utf8"));
  const forage = new ForageServiceClient(grpc, credentials);
  const operator = new OperatorServiceClient(grpc, credentials);
  let applies = 0;
  return {
    applyReplicas: async (name, image, replicas) => {
      const startedMs = performance.now();
      const request = requestFor(name, image, replicas, `bench-${++applies}`);
      const { rolloutId } = await new Promise<ApplyResourcesResponse>((resolve, reject) => {
        forage.applyResources(request, metadata, (error, response) =>
          error === null ? resolve(response) : reject(error),
        );
      });
      const seconds = (): number => (performance.now() - startedMs) / 1000;
      let last = "";
      let ready: number | undefined;
      for await (const event of forage.watchRollout({ rolloutId }, metadata)) {
        last = event.message;
        if (last.startsWith(`${replicas}/${replicas} ready`)) ready ??= seconds();
        if (event.status === RolloutStatus.FAILED) throw new Error(`the rollout failed: ${last}`);
      }
      return { ready: ready ?? seconds(), done: seconds() };
    },
    pods: () =>
      new Promise((resolve, reject) => {
        const request = { namespace: NAMESPACE, labels: {}, workload: "", node: "", name: "" };
        operator.listPods(request, metadata, (error, response) =>
          error === null ? resolve(response.pods) : reject(error),
        );
      }),
    deleteAll: () =>
      new Promise((resolve, reject) => {
        const request = { namespace: NAMESPACE, resources: [], labels: {}, all: true };
        operator.delete(request, metadata, (error) => (error === null ? resolve() : reject(error)));
      }),
    close: () => {
      forage.close();
      operator.close();
    },
  };
}

function requestFor(name: string, image: string, replicas: number, applyId: string): ApplyResourcesRequest {
  const resources = { requests: { cpu: "1m", memory: "4Mi" } };
  const container = { name: "main", image, command: ["sleep", "3600"], resources };
  // `sleep` ignores SIGTERM as process 1.
  const value = { scaling: { replicas }, container, podConfig: { terminationGracePeriodSeconds: 1 } };
  return ApplyResourcesRequest.fromPartial({
    applyId,
    namespace: NAMESPACE,
    resources: [{ name, spec: { $case: "containerService", value } }],
  });
}
