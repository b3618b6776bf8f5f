import type { Log } from "@forage/common/log";
import { WorkspaceManagerService } from "@forage/proto/core";
import { WorkspaceContentServiceService } from "@forage/proto/forage/workspaces/v1/content";
import { WorkspaceNodeServiceService } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { ServiceDefinition } from "@grpc/grpc-js";
import type { Registry } from "prom-client";
import type { ActingTime } from "../acting-time/acting-time.ts";
import type { UnschedulablePods } from "../control/placement/unschedulable-pods.ts";
import type { Vault } from "../objects/vault.ts";
import { type Handlers, serve } from "../rpc/serve.ts";
import type { FurtherService } from "../services.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { ActivityWriter } from "./activity.ts";
import { BackupRetention } from "./content/backup-retention.ts";
import type { ContentStore } from "./content/content-store.ts";
import { ContentSweep } from "./content/content-sweep.ts";
import { Exports } from "./content/exports.ts";
import { transferLimits } from "./content/open-content-store.ts";
import { SnapshotRetention } from "./content/snapshot-retention.ts";
import { TransferService } from "./content/transfer-service.ts";
import { NamedObjects } from "./content-names.ts";
import { workspaceMetrics } from "./metrics.ts";
import { CONTENT_WINDOW_BYTES, NODE_SERVICE } from "./node/node-service.ts";
import { quotaBytesOf } from "./node/order.ts";
import { NodeOrders } from "./node/orders.ts";
import { NodeSync } from "./node/sync.ts";
import { WorkspaceReconciler } from "./reconciler.ts";
import { contentService } from "./rpc/content.ts";
import { endStaleExports } from "./rpc/export-content.ts";
import { managerService } from "./rpc/service.ts";
import { StatusReader } from "./rpc/status-reader.ts";
import { Subscribers } from "./rpc/subscribers.ts";
import type { WorkspaceSettings } from "./settings.ts";
import type { NamespaceQuota } from "./start/quota.ts";
import { WorkspaceView } from "./view.ts";
import { WorkspaceWriter } from "./writer.ts";

export interface WorkspacesOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly vault: Vault;
  readonly clock: Clock;
  /** The clock for deadlines, which excludes time in which the coordinator could not act. */
  readonly time: ActingTime;
  readonly log: Log;
  readonly epoch: number;
  readonly settings: WorkspaceSettings;
  readonly content: ContentStore;
  readonly unschedulable: Pick<UnschedulablePods, "get">;
  readonly quota: NamespaceQuota;
  readonly randomName: (length: number) => string;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly started?: Promise<void> | undefined;
  readonly onFatal: (error: unknown) => void;
}

export interface Workspaces {
  readonly services: readonly FurtherService[];
  /** The handlers of the services, for simulations, which have no port. */
  readonly handlers: WorkspaceHandlers;
  readonly view: WorkspaceView;
  readonly activity: ActivityWriter;
  readonly statuses: StatusReader;
  readonly subscribers: Subscribers;
  /** Registers the metrics. */
  addMetrics(registers: Registry[]): void;
  /** Waits for steps in progress, and closes the content store. */
  close(): Promise<void>;
}

export interface WorkspaceHandlers {
  readonly manager: Handlers<typeof WorkspaceManagerService>;
  readonly contents: Handlers<typeof WorkspaceContentServiceService>;
  readonly node: Handlers<typeof WorkspaceNodeServiceService>;
}

/** The gRPC services that `openWorkspaces` implements. */
export const workspaceDefinitions: readonly ServiceDefinition[] = [
  WorkspaceManagerService,
  WorkspaceContentServiceService,
  NODE_SERVICE,
];

/** Opens everything that serves workspaces, based on the coordinator's cluster view. */
export async function openWorkspaces(options: WorkspacesOptions): Promise<Workspaces> {
  const { store, state, vault, clock, log, epoch, settings, content } = options;
  const { view, follow } = await WorkspaceView.load(store, log);
  const over = new AbortController();
  const following = follow(over.signal).catch(options.onFatal);
  const { nowMs } = clock;
  const writer = new WorkspaceWriter({ store, state, view, epoch });
  const orders = new NodeOrders({ view, vault, settings, epoch, log });
  const sync = new NodeSync({
    view,
    writer,
    orders,
    log,
    quotaOf: (record) => quotaBytesOf(record, settings),
  });
  const exports = new Exports();
  await endStaleExports(view, writer);
  const transfers = new TransferService({
    ...{ store: content, orders, clock, exports },
    limits: transferLimits(settings.content),
  });
  const reconciler = new WorkspaceReconciler({ ...options, view, writer });
  const activity = new ActivityWriter({ view, writer, nowMs });
  const statuses = new StatusReader({ view, state, vault, log });
  const subscribers = new Subscribers({ view, statuses });
  const named = new NamedObjects(view);
  const graceMs = settings.content.orphanGraceHours * 3_600_000;
  const retention = new SnapshotRetention({ view, writer, limits: settings.snapshots, clock, graceMs });
  const { backupMaxAgeDays: maxAgeDays } = settings;
  const backupRetention = new BackupRetention({ view, writer, maxAgeDays, clock, graceMs });
  const sweep = new ContentSweep({
    ...{ store: content, clock, log },
    before: async () => {
      await retention.removeExpired();
      await backupRetention.removeExpired();
    },
    isNamed: (object) => named.has(object),
    isReady: () => true,
    graceMs,
  });
  const contents = contentService({ ...options, view, writer, nowMs, exports, sync });
  const manager = managerService({ ...options, view, writer, nowMs, activity, statuses, subscribers });
  const node = {
    sync: sync.sync,
    upload: transfers.upload.bind(transfers),
    download: transfers.download.bind(transfers),
  };
  return {
    ...{ view, activity, statuses, subscribers },
    handlers: { manager, contents, node },
    services: [
      {
        definition: WorkspaceManagerService,
        addTo: (server, serving) => serve(server, WorkspaceManagerService, manager, serving),
      },
      {
        definition: WorkspaceContentServiceService,
        addTo: (server, serving) => serve(server, WorkspaceContentServiceService, contents, serving),
      },
      {
        definition: WorkspaceNodeServiceService,
        addTo: (server, serving) =>
          serve(server, NODE_SERVICE, node, { ...serving, receiveWindowBytes: CONTENT_WINDOW_BYTES }),
      },
    ],
    addMetrics: (registers) => workspaceMetrics({ view, subscribers, sync }, registers),
    close: async () => {
      subscribers.close();
      sync.close();
      await reconciler.close();
      await sweep.close();
      await content.close();
      over.abort();
      await following;
    },
  };
}
