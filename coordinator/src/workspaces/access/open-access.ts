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
import { AccessStats, type Door } from "./access-stats.ts";
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
}

/** The ports through which people reach their workspaces. */
export interface Access {
  readonly ingress: IngressServer["address"] | undefined;
  readonly ssh: SshServer["address"] | undefined;
  /** Registers the metrics. */
  addMetrics(registers: Registry[]): void;
  close(): Promise<void>;
}

interface Parts extends AccessOptions {
  readonly directory: WorkspaceDirectory;
  readonly dialFor: (door: Door) => DialPod;
  readonly activity: ActivityMeter;
  readonly codes: UsedCodes;
  readonly stats: AccessStats;
}

/** Opens the ports that the settings name. */
export async function openAccess(options: AccessOptions): Promise<Access> {
  const { workspaces, broker, store, clock, log } = options;
  const sink = {
    markActive: (instanceId: string): void =>
      void workspaces.activity.mark(instanceId, false).catch((error: unknown) =>
        // The workspace may have gone meanwhile.
        log.debug({ event: "activity-not-recorded", instanceId, reason: messageOf(error) }),
      ),
  };
  const activity = new ActivityMeter(sink, clock);
  // Commands, copied files and forwarded ports of pods are uses of the workspace as much as SSH.
  const stopObserving = options.podUse.observe(({ name, uid }) => {
    const record = workspaces.view.instanceOfPod(name)?.record;
    return record?.podUid === uid ? activity.begin(record.id) : undefined;
  });
  const directory = new ViewDirectory(workspaces.view, workspaces.statuses);
  const stats = new AccessStats();
  const codes = await UsedCodes.open({ store, clock, log });
  const dialFor = (door: Door) =>
    dialThrough(broker, (direction, bytes) => stats.moved(door, direction, bytes));
  const parts = { ...options, directory, dialFor, activity, codes, stats };
  const ingress = await openIngress(parts);
  if (ingress !== undefined) log.info({ event: "ingress-started", ...ingress.address });
  const ssh = await openSsh(parts);
  if (ssh !== undefined) log.info({ event: "ssh-gateway-started", ...ssh.address });
  // A visitor who loses the right to reach a workspace loses the open connections at once.
  const unsubscribe = workspaces.view.subscribe((changes) => {
    for (const { id, kind } of changes)
      if (kind === "instance") {
        ingress?.recheck(id);
        ssh?.recheck(id);
      }
  });
  return {
    ingress: ingress?.address,
    ssh: ssh?.address,
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

function openIngress(parts: Parts): Promise<IngressServer> | undefined {
  const { settings, clock, log } = parts;
  if (settings.ingress === undefined) return undefined;
  const { workspacePort, connectionsPerWorkspace } = settings.ingress;
  const dial = parts.dialFor("ingress");
  const ingress = new Ingress({
    ...parts,
    dial,
    templates: settings,
    workspacePort,
    connectionsPerWorkspace,
  });
  return startIngressServer({ settings: settings.ingress, ingress, clock, log });
}

function openSsh({ settings, broker, ...parts }: Parts): Promise<SshServer> | undefined {
  if (settings.ssh === undefined) return undefined;
  return startSshServer({
    ...{ ...parts, settings: settings.ssh },
    ...{ dial: parts.dialFor("ssh"), openInPod: openThrough(broker) },
  });
}
