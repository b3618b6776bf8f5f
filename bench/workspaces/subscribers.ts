import { setTimeout as delay } from "node:timers/promises";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  StartWorkspaceRequest,
  type SubscribeResponse,
  WorkspaceManagerClient,
  WorkspacePhase,
  WorkspaceType,
} from "@forage/proto/core";
import type { ServiceError } from "@grpc/grpc-js";
import { peakMb, residentMb } from "../apply/process-cost.ts";
import { startCoordinatorProcess } from "../fleet/coordinator-process.ts";
import { joinToken } from "../fleet/socket-agents.ts";
import { startNode } from "./hollow-node.ts";
import { secondsOf } from "./rounds.ts";

const NODES = 2;
const SUBSCRIBERS_PER_CONNECTION = 50;
const EVERY_MS = 100;
/**
 * Part of each status. It makes the statuses larger than the buffers of a connection, for a client that never reads.
 */
const NOTE = "x".repeat(2_000);

/**
 * Measures a coordinator process that sends many subscribers the changes of workspaces that start and stop at the same
 * time, on nodes without hosts, while another client never reads.
 */
export async function measureSubscribers(
  workspaces: number,
  subscribers: number,
): Promise<Readonly<Record<string, number>>> {
  const classes = [{ id: "tiny", cpu: "1m", memory: "1Mi" }];
  const coordinator = await startCoordinatorProcess([], { workspaces: { enabled: true, classes } });
  const closers: (() => void)[] = [];
  const credentials = channelCredentials({ caPem: coordinator.caPem });
  const metadata = bearerMetadata(coordinator.token);
  const connect = (): WorkspaceManagerClient => {
    const client = new WorkspaceManagerClient(coordinator.address, credentials, {
      "grpc.use_local_subchannel_pool": 1,
    });
    closers.push(() => client.close());
    return client;
  };
  try {
    const token = await joinToken(coordinator, { "forage.dev/workspaces": "true" });
    for (let index = 0; index < NODES; index++)
      closers.push(await startNode(coordinator, token, `n${index}`));
    const manager = connect();
    const call = <R>(
      send: (done: (error: ServiceError | null, response: R) => void) => unknown,
    ): Promise<R> =>
      new Promise((resolve, reject) =>
        send((error, response) => (error ? reject(error) : resolve(response))),
      );
    const before = residentMb(coordinator.pid);
    const neverReads = connect().subscribe({ mustMatch: undefined }, metadata);
    neverReads.on("error", () => undefined);
    neverReads.pause();
    const counts: StoppedCount[] = [];
    for (let index = 0, client = connect(); index < subscribers; index++) {
      if (index % SUBSCRIBERS_PER_CONNECTION === 0) client = connect();
      const count = new StoppedCount();
      counts.push(count);
      const stream = client.subscribe({ mustMatch: undefined }, metadata);
      stream.on("error", (error) => count.fail(error));
      stream.on("data", (response: SubscribeResponse) => count.add(response));
    }
    const ids = Array.from({ length: workspaces }, (_, index) => `w-${index}`);
    const seconds = await secondsOf(async () => {
      await Promise.all(
        ids.map((id) =>
          call((done) => manager.startWorkspace(requestOf(id), metadata, done)).then(() =>
            call((done) => manager.stopWorkspace({ id, policy: 0 }, metadata, done)),
          ),
        ),
      );
      while (!counts.every((count) => count.stopped === workspaces)) await delay(EVERY_MS);
    });
    return {
      subscribers: subscribers,
      "workspaces that start and stop at once": workspaces,
      "until every subscriber has STOPPED of each (s)": seconds,
      "messages to all subscribers": counts.reduce((sum, { messages }) => sum + messages, 0),
      "STOPPED that came twice": counts.reduce((sum, { repeated }) => sum + repeated, 0),
      "coordinator, resident memory before (MB)": before,
      "coordinator, highest resident memory (MB)": peakMb(coordinator.pid),
    };
  } finally {
    for (const close of closers) close();
    await coordinator.close();
  }
}

/** Counts the workspaces whose stop a subscriber has seen. */
class StoppedCount {
  messages = 0;
  repeated = 0;
  readonly #stopped = new Set<string>();
  #error: Error | undefined;

  add({ status }: SubscribeResponse): void {
    this.messages += 1;
    if (status?.phase !== WorkspacePhase.STOPPED) return;
    if (this.#stopped.has(status.id)) this.repeated += 1;
    this.#stopped.add(status.id);
  }

  fail(error: Error): void {
    this.#error = error;
  }

  get stopped(): number {
    if (this.#error !== undefined) throw this.#error;
    return this.#stopped.size;
  }
}

/** Returns a request for an image build. It makes no backup, because nodes without hosts could not store one. */
function requestOf(id: string): StartWorkspaceRequest {
  return StartWorkspaceRequest.fromPartial({
    ...{ id, servicePrefix: id, type: WorkspaceType.IMAGEBUILD },
    metadata: { owner: "owner", metaId: id, annotations: { note: NOTE } },
    spec: {
      workspaceImage: "registry.example/workspace:1",
      workspaceLocation: "project",
      initializer: { spec: { $case: "empty", value: {} } },
    },
  });
}
