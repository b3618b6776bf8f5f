import { readFileSync } from "node:fs";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  type AdmissionLevel,
  type GetWorkspacesResponse,
  StartWorkspaceRequest,
  type StartWorkspaceResponse,
  StopWorkspacePolicy,
  type SubscribeRequest,
  WorkspaceManagerClient,
  type WorkspacePhase,
  type WorkspaceStatus,
} from "@forage/proto/core";
import { type Client, type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { waitFor } from "../lib/wait-for.ts";
import { Subscription } from "./subscription.ts";
import type { System } from "./system.ts";

type Request = Parameters<typeof StartWorkspaceRequest.fromPartial>[0];
type Callback<R> = (error: ServiceError | null, response: R) => void;

/** The client that Gitpod would be of a coordinator's WorkspaceManager. */
export class WorkspaceCalls {
  readonly client: WorkspaceManagerClient;
  readonly metadata: Metadata;
  readonly #system: System;
  readonly #clients: WorkspaceManagerClient[] = [];

  constructor(system: System) {
    this.#system = system;
    this.client = this.#connect();
    this.metadata = bearerMetadata(readFileSync(system.tokenFile, "utf8"));
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  /** Opens `count` subscriptions to matching workspaces on a new connection. */
  subscribe(count: number, mustMatch: SubscribeRequest["mustMatch"]): readonly Subscription[] {
    const client = this.#connect();
    return Array.from(
      { length: count },
      () => new Subscription(client.subscribe({ mustMatch }, this.metadata)),
    );
  }

  start(id: string, change: Request = {}): Promise<StartWorkspaceResponse> {
    const { metadata, spec, ...rest } = change;
    const request = StartWorkspaceRequest.fromPartial({
      id,
      servicePrefix: id,
      ...rest,
      metadata: { owner: "owner", metaId: `meta-${id}`, ...metadata },
      spec: {
        workspaceImage: this.#system.host.image,
        workspaceLocation: "project",
        initializer: { spec: { $case: "empty", value: {} } },
        ...spec,
      },
    });
    return this.call((done) => this.client.startWorkspace(request, this.metadata, done));
  }

  async stop(id: string, policy: StopWorkspacePolicy = StopWorkspacePolicy.NORMALLY): Promise<void> {
    await this.call((done) => this.client.stopWorkspace({ id, policy }, this.metadata, done));
  }

  /** Makes a backup, and returns once it is complete. */
  async backup(id: string): Promise<void> {
    await this.call((done) => this.client.backupWorkspace({ id }, this.metadata, done));
  }

  /** Sets who may use the workspace. */
  async admit(id: string, level: AdmissionLevel): Promise<void> {
    await this.call((done) => this.client.controlAdmission({ id, level }, this.metadata, done));
  }

  /** Records activity, and returns its time by the coordinator's clock. */
  async markActive(id: string): Promise<number> {
    await this.call((done) => this.client.markActive({ id, closed: false }, this.metadata, done));
    const answer = await this.call((done: Callback<{ lastActivity: string }>) =>
      this.client.describeWorkspace({ id }, this.metadata, done),
    );
    return Date.parse(answer.lastActivity);
  }

  /** Returns all instances. */
  list(): Promise<GetWorkspacesResponse> {
    return this.call((done) => this.client.getWorkspaces({ mustMatch: undefined }, this.metadata, done));
  }

  /** Returns the instance's status; `undefined` for an unknown instance, and while the coordinator is down. */
  async describe(id: string): Promise<WorkspaceStatus | undefined> {
    try {
      const answer = await this.call((done: Callback<{ status: WorkspaceStatus | undefined }>) =>
        this.client.describeWorkspace({ id }, this.metadata, done),
      );
      return answer.status;
    } catch (error) {
      const { code } = error as Partial<ServiceError>;
      if (code === status.NOT_FOUND || code === status.UNAVAILABLE) return undefined;
      throw error;
    }
  }

  /** Waits until the instance is in the phase. */
  async reaches(id: string, phase: WorkspacePhase, limitMs = 60_000): Promise<WorkspaceStatus> {
    let last: WorkspaceStatus | undefined;
    const explain = (): string =>
      `${JSON.stringify(last, (_, it) => (typeof it === "bigint" ? String(it) : it))}\n${readFileSync(this.#system.agent.logPath, "utf8").slice(-3000)}`;
    await waitFor(
      async () => {
        last = await this.describe(id);
        return last?.phase === phase;
      },
      { what: `workspace ${id} is in phase ${phase}`, limitMs, everyMs: 100, explain },
    );
    if (last === undefined) throw new Error(`workspace ${id} has no status`);
    return last;
  }

  call<R>(send: (done: Callback<R>) => Client | unknown): Promise<R> {
    return new Promise((resolve, reject) => {
      send((error, response) => (error === null ? resolve(response) : reject(error)));
    });
  }

  /** Opens a connection that no other client shares. */
  #connect(): WorkspaceManagerClient {
    const { grpc, caFile } = this.#system;
    const credentials = channelCredentials({ caPem: readFileSync(caFile, "utf8") });
    const client = new WorkspaceManagerClient(grpc, credentials, { "grpc.use_local_subchannel_pool": 1 });
    this.#clients.push(client);
    return client;
  }
}
