import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  ApplyResourcesRequest,
  type ApplyResourcesResponse,
  ForageServiceClient,
  RolloutStatus,
} from "@forage/proto/forest/v1/forage";
import { COORDINATOR_NODE_OPTIONS } from "../../hack/instance/describe-programs.ts";
import { type CoordinatorProcess, startCoordinatorProcess } from "../fleet/coordinator-process.ts";
import { SocketAgents } from "../fleet/socket-agents.ts";
import { answerLines, sendLine } from "./lines.ts";
import type { FromServer, ToServer } from "./messages.ts";

const NODES = 10;
const endpoints = Number(process.argv.at(-1));
const LABELS = { app: "web" };

/**
 * The whole coordinator in a separate process, with its store on disk. Agents are in this process, on TLS connections.
 * A change is an agent's report.
 */
const furtherOptions = (process.env.BENCH_NODE_OPTIONS ?? "").split(" ").filter((option) => option !== "");
const coordinator = await startCoordinatorProcess([...COORDINATOR_NODE_OPTIONS, ...furtherOptions]);
const agents = new SocketAgents({
  host: (node) => ({
    address: `192.0.2.${Number(node.slice(1)) + 1}`,
    pods: Math.ceil(endpoints / NODES),
  }),
});
await agents.start(coordinator, NODES);
await applyService(coordinator);

answerLines(
  (message: ToServer) => change(message),
  async () => {
    agents.close();
    await coordinator.close();
  },
);
send({ type: "up", port: coordinator.destinationPort, pid: coordinator.pid });

function change({ pod, ready }: ToServer): void {
  const agent = pod % NODES;
  const assignment = agents.podOf(agent, Math.floor(pod / NODES));
  if (assignment === undefined) throw new Error(`node ${agent} has no pod ${Math.floor(pod / NODES)}`);
  const atNs = process.hrtime.bigint();
  agents.setReady(agent, assignment, ready);
  send({ type: "changed", atNs: String(atNs) });
}

async function applyService({ address, caPem, token }: CoordinatorProcess): Promise<void> {
  const forage = new ForageServiceClient(address, channelCredentials({ caPem }));
  const metadata = bearerMetadata(token);
  const ports = [{ name: "http", containerPort: 8080, protocol: "TCP" }];
  const container = { name: "main", image: "registry.example/web:v1", ports };
  const workload = { scaling: { replicas: endpoints }, container };
  const service = { target: "web", ports: [{ name: "http", port: 80, targetPort: 8080 }] };
  const request = ApplyResourcesRequest.fromPartial({
    applyId: "destination",
    namespace: "shop",
    labels: LABELS,
    resources: [
      { name: "web", spec: { $case: "containerService", value: workload } },
      { name: "web", spec: { $case: "service", value: service } },
    ],
  });
  const { rolloutId } = await new Promise<ApplyResourcesResponse>((resolve, reject) =>
    forage.applyResources(request, metadata, (error, response) =>
      error ? reject(error) : resolve(response),
    ),
  );
  for await (const { status, resourceName, message } of forage.watchRollout({ rolloutId }, metadata))
    if (status === RolloutStatus.FAILED || status === RolloutStatus.ROLLED_BACK)
      throw new Error(`${resourceName} failed: ${message}`);
  forage.close();
}

function send(message: FromServer): void {
  sendLine(message);
}
