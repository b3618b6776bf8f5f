import {
  ContentStage,
  type SyncResponse,
  WorkspaceNodeServiceClient,
  WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import type { CoordinatorProcess } from "../fleet/coordinator-process.ts";
import { heartbeat } from "../fleet/heartbeats.ts";
import { helloOf, PodAnswers } from "../fleet/pod-answers.ts";
import { HEARTBEAT_MS, joinAndConnect } from "../fleet/socket-agents.ts";

const HOST = { address: "192.0.2.1", pods: 110 };

/**
 * Starts a node without a host, and returns a function that closes it. Pods run and end at once, and content is ready
 * and deleted at once.
 */
export async function startNode(
  coordinator: CoordinatorProcess,
  token: string,
  name: string,
): Promise<() => void> {
  const { client, stream, credentials } = await joinAndConnect(coordinator, token, name);
  const answers = new PodAnswers(() => undefined);
  stream.on("error", () => undefined);
  stream.on("data", (response) => {
    const answer = answers.answer(response);
    if (answer !== undefined) stream.write(answer);
  });
  stream.write({ message: { $case: "hello", value: helloOf(name, HOST) } });
  const timer = setInterval(() => stream.write(heartbeat()), HEARTBEAT_MS);
  const content = new WorkspaceNodeServiceClient(coordinator.address, credentials);
  const sync = content.sync();
  sync.on("error", () => undefined);
  sync.on("data", ({ orders }: SyncResponse) => {
    const workspaces = orders.map(({ instanceId, version, dispose }) =>
      WorkspaceReport.fromPartial({
        instanceId,
        stage: dispose ? ContentStage.DISPOSED : ContentStage.READY,
        orderVersion: version,
      }),
    );
    if (workspaces.length > 0) sync.write({ full: false, workspaces });
  });
  sync.write({ full: true, workspaces: [] });
  return () => {
    clearInterval(timer);
    sync.cancel();
    content.close();
    stream.cancel();
    client.close();
  };
}
