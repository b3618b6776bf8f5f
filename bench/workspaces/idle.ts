import { setTimeout as delay } from "node:timers/promises";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  type GetWorkspacesResponse,
  StartWorkspaceRequest,
  WorkspaceManagerClient,
  WorkspacePhase,
} from "@forage/proto/core";
import type { ServiceError } from "@grpc/grpc-js";
import { cpuSeconds, residentMb } from "../apply/process-cost.ts";
import { startCoordinatorProcess } from "../fleet/coordinator-process.ts";
import { joinToken } from "../fleet/socket-agents.ts";
import { startNode } from "./hollow-node.ts";
import { secondsOf } from "./rounds.ts";

const WORKSPACES_PER_NODE = 100;
const MEASURED_MS = 30_000;
/** The number of concurrent starts. */
const BATCH = 50;
/** Statuses of a thousand workspaces exceed gRPC's default of 4 MB. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

interface Cost {
  readonly cpuPercent: number;
  readonly megabytes: number;
}

/**
 * Measures the cost of running but unused workspaces in a coordinator process, on nodes without hosts. The cost before
 * the first workspace is measured as well, and subtracted.
 */
export async function measureIdle(count: number): Promise<Readonly<Record<string, number>>> {
  const classes = [{ id: "tiny", cpu: "1m", memory: "1Mi" }];
  const coordinator = await startCoordinatorProcess([], { workspaces: { enabled: true, classes } });
  const closers: (() => void)[] = [];
  try {
    const token = await joinToken(coordinator, { "forage.dev/workspaces": "true" });
    for (let index = 0; index < Math.ceil(count / WORKSPACES_PER_NODE); index++)
      closers.push(await startNode(coordinator, token, `n${index}`));
    const credentials = channelCredentials({ caPem: coordinator.caPem });
    const manager = new WorkspaceManagerClient(coordinator.address, credentials, {
      "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    });
    closers.push(() => manager.close());
    const before = await costOf(coordinator.pid);
    const seconds = await secondsOf(() => startAll(manager, coordinator.token, count));
    const after = await costOf(coordinator.pid);
    return {
      "idle workspaces": count,
      "all RUNNING, on nodes without hosts (s)": seconds,
      "coordinator, CPU of the workspaces (% of a core)": after.cpuPercent - before.cpuPercent,
      "coordinator, resident memory of the workspaces (MB)": after.megabytes - before.megabytes,
    };
  } finally {
    for (const close of closers) close();
    await coordinator.close();
  }
}

async function startAll(manager: WorkspaceManagerClient, token: string, count: number): Promise<void> {
  const metadata = bearerMetadata(token);
  const call = <R>(send: (done: (error: ServiceError | null, response: R) => void) => unknown): Promise<R> =>
    new Promise((resolve, reject) => send((error, response) => (error ? reject(error) : resolve(response))));
  const start = (id: string) => {
    const request = StartWorkspaceRequest.fromPartial({
      ...{ id, servicePrefix: id, metadata: { owner: "owner", metaId: id } },
      spec: {
        workspaceImage: "registry.example/workspace:1",
        workspaceLocation: "project",
        initializer: { spec: { $case: "empty", value: {} } },
      },
    });
    return call((done) => manager.startWorkspace(request, metadata, done));
  };
  const ids = Array.from({ length: count }, (_, index) => `idle-${index}`);
  for (let at = 0; at < count; at += BATCH) await Promise.all(ids.slice(at, at + BATCH).map(start));
  for (let running = 0; running < count; await delay(200)) {
    const { status } = await call<GetWorkspacesResponse>((done) =>
      manager.getWorkspaces({ mustMatch: undefined }, metadata, done),
    );
    running = status.filter(({ phase }) => phase === WorkspacePhase.RUNNING).length;
  }
}

async function costOf(pid: number): Promise<Cost> {
  const before = cpuSeconds(pid);
  await delay(MEASURED_MS);
  const cpuPercent = ((cpuSeconds(pid) - before) / MEASURED_MS) * 100_000;
  return { cpuPercent, megabytes: residentMb(pid) };
}
