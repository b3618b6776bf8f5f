import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { type ApplyResourcesResponse, ForageServiceClient } from "@forage/proto/forest/v1/forage";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { anonymousMb, cpuSeconds, idlePercent, residentMb } from "../apply/process-cost.ts";
import { requestsFor } from "./apply-pods.ts";
import { startCoordinatorProcess } from "./coordinator-process.ts";
import { heartbeat } from "./heartbeats.ts";
import { helloOf } from "./pod-answers.ts";
import { joinAndConnect, joinToken } from "./socket-agents.ts";

/** The number of streams on one connection, as in the dashboard of a team. */
const STREAMS_PER_CONNECTION = 100;
const PODS = 100;
const HEARTBEAT_MS = 2_500;
const IDLE_SECONDS = 10;
const LIMIT_MS = 300_000;

/**
 * Measures the cost of watchers of one open rollout. Half of them never read: they are sent the first state, and then
 * flow control stops the coordinator from sending more.
 */
export async function measureWatchers(count: number, result: Record<string, number>): Promise<void> {
  const coordinator = await startCoordinatorProcess();
  const { address, caPem, token } = coordinator;
  const { client, stream } = await joinAndConnect(coordinator, await joinToken(coordinator), "n0");
  stream.on("error", () => {}).resume();
  // The agent reports nothing about its pods, so their rollout stays open.
  stream.write({ message: { $case: "hello", value: helloOf("n0", { address: "192.0.2.1", pods: PODS }) } });
  const timer = setInterval(() => stream.write(heartbeat()), HEARTBEAT_MS);
  const clients: ForageServiceClient[] = [];
  try {
    const own = new ForageServiceClient(address, channelCredentials({ caPem }));
    clients.push(own);
    const [request] = requestsFor(PODS);
    if (request === undefined) throw new Error("there is nothing to apply");
    const { rolloutId } = await new Promise<ApplyResourcesResponse>((resolve, reject) =>
      own.applyResources(request, bearerMetadata(token), (error, answer) =>
        error ? reject(error) : resolve(answer),
      ),
    );
    const before = { residentMb: residentMb(coordinator.pid), anonymousMb: anonymousMb(coordinator.pid) };
    const cpu = cpuSeconds(coordinator.pid);
    let open = 0;
    let failed = 0;
    for (let index = 0; index < count; index++) {
      if (index % STREAMS_PER_CONNECTION === 0) {
        const options = { "grpc.use_local_subchannel_pool": 1 };
        clients.push(new ForageServiceClient(address, channelCredentials({ caPem }), options));
      }
      const watching = clients.at(-1)?.watchRollout({ rolloutId }, bearerMetadata(token));
      watching?.on("error", () => failed++);
      watching?.once("metadata", () => open++);
      if (index % 2 === 0) watching?.on("data", () => {});
      if (index % STREAMS_PER_CONNECTION !== STREAMS_PER_CONNECTION - 1) continue;
      await waitFor(async () => open + failed > index, { what: "the streams are open", limitMs: LIMIT_MS });
    }
    const what = `${count} watchers of rollouts, half of them not reading`;
    result[`${what}: refused`] = failed;
    result[`${what}: processor time to open one (ms)`] = ((cpuSeconds(coordinator.pid) - cpu) * 1000) / count;
    result[`${what}: resident for one (kB)`] =
      ((residentMb(coordinator.pid) - before.residentMb) * 1000) / count;
    result[`${what}: anonymous memory for one (kB)`] =
      ((anonymousMb(coordinator.pid) - before.anonymousMb) * 1000) / count;
    result[`${what}: resident in all (MB)`] = residentMb(coordinator.pid);
    result[`${what}: idle (% of a core)`] = await idlePercent(coordinator.pid, IDLE_SECONDS);
  } finally {
    clearInterval(timer);
    for (const each of clients) each.close();
    client.close();
    await coordinator.close();
  }
}
