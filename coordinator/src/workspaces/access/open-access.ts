import type { Clock } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import type { Registry } from "prom-client";
import type { PodUse } from "../../api/operator/pod-use.ts";
import { type DialPod, dialThrough, openThrough } from "../../forwarding/dial-pod.ts";
import type { SessionBroker } from "../../link/session-broker.ts";
import type { Store } from "../../store/index.ts";
import { Ingress } from "../ingress/ingress.ts";
import { type IngressServer, startIngressServer } from "../ingress/ingress-server.ts";
import type { Workspaces } from "../open-workspaces.ts";
import type { WorkspaceSettings } from "../settings.ts";
import { type SshServer, startSshServer } from "../ssh/ssh-server.ts";
import type { AccessPorts } from "./access-ports.ts";
import { AccessStats, type EntryPoint } from "./access-stats.ts";
import { ActivityMeter } from "./activity-meter.ts";
import { UsedCodes } from "./used-codes.ts";
import { ViewDirectory } from "./view-directory.ts";
import type { WorkspaceDirectory } from "./workspace-directory.ts";

export interface AccessOptions {
  readonly settings: WorkspaceSettings;
  readonly workspaces: Pick<Workspaces, "view" | "statuses" | "activity">;
  readonly broker: SessionBroker;
  readonly podUse: Pick<PodUse, "observe">;
  readonly store: Store;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Ports that are already open. Default: `openAccess` opens the configured ports. */
  readonly ports?: AccessPorts | undefined;
}

/** The ports through which users reach their workspaces. */
export interface Access {
  readonly ingress: IngressServer["address"] | undefined;
  readonly ssh: SshServer["address"] | undefined;
  /** Serves connections that another coordinator passed on. */
  readonly accept: {
    readonly ingress: IngressServer["accept"] | undefined;
    readonly ssh: SshServer["accept"] | undefined;
  };
  /** Registers the metrics. */
  addMetrics(registers: Registry[]): void;
  close(): Promise<void>;
}

interface AccessContext extends AccessOptions {
  readonly directory: WorkspaceDirectory;
  readonly dialFor: (entryPoint: EntryPoint) => DialPod;
  readonly activity: ActivityMeter;
  readonly codes: UsedCodes;
  readonly stats: AccessStats;
}

/** Opens the configured ports and serves them. */
export async function openAccess(options: AccessOptions): Promise<Access> {
  const { workspaces, broker, store, clock, log } = options;
  const sink = {
    markActive: (instanceId: string): void =>
      void workspaces.activity.mark(instanceId, false).catch((error: unknown) =>
        // The workspace may have been removed since.
        log.debug({ event: "activity-not-recorded", instanceId, reason: messageOf(error) }),
      ),
  };
  const activity = new ActivityMeter(sink, clock);
  // A command, file copy or forwarded port of a pod counts as use of its workspace, as an SSH
  // connection does.
  const stopObserving = options.podUse.observe(({ name, uid }) => {
    const record = workspaces.view.instanceOfPod(name)?.record;
    return record?.podUid === uid ? activity.begin(record.id) : undefined;
  });
  const directory = new ViewDirectory(workspaces.view, workspaces.statuses);
  const stats = new AccessStats();
  const codes = await UsedCodes.open({ store, clock, log });
  const dialFor = (entryPoint: EntryPoint) =>
    dialThrough(broker, (direction, bytes) => stats.moved(entryPoint, direction, bytes));
  const context = { ...options, directory, dialFor, activity, codes, stats };
  const ingress = await openIngress(context);
  if (ingress !== undefined) log.info({ event: "ingress-started", ...ingress.address });
  const ssh = await openSsh(context);
  if (ssh !== undefined) log.info({ event: "ssh-gateway-started", ...ssh.address });
  // Closes open connections at once when their visitor may no longer reach the workspace.
  const unsubscribe = workspaces.view.subscribe((changes) => {
    for (const { id, type } of changes)
      if (type === "instance") {
        ingress?.recheck(id);
        ssh?.recheck(id);
      }
  });
  return {
    ingress: ingress?.address,
    ssh: ssh?.address,
    accept: { ingress: ingress?.accept, ssh: ssh?.accept },
    addMetrics: (registers) => stats.addMetrics(registers),
    close: async () => {
      unsubscribe();
      stopObserving();
      await codes.close();
      await ssh?.close();
      await ingress?.close();
      activity.close();
    },
  };
}

async function openIngress(context: AccessContext): Promise<IngressServer | undefined> {
  const { settings, clock, log, ports } = context;
  if (settings.ingress === undefined) return undefined;
  const { workspacePort, connectionsPerWorkspace } = settings.ingress;
  const dial = context.dialFor("ingress");
  const ingress = new Ingress({
    ...context,
    dial,
    templates: settings,
    workspacePort,
    connectionsPerWorkspace,
  });
  const server =
    ports?.ingress ?? (await startIngressServer({ settings: settings.ingress, ingress, clock, log }));
  server.serve(ingress);
  return server;
}

function openSsh({ settings, broker, ports, ...context }: AccessContext): Promise<SshServer> | undefined {
  if (settings.ssh === undefined) return undefined;
  return startSshServer({
    ...{ ...context, settings: settings.ssh, port: ports?.ssh },
    ...{ dial: context.dialFor("ssh"), openInPod: openThrough(broker) },
  });
}
