import type { Clock } from "@forage/common/clock";
import { messageOf } from "@forage/common/message-of";
import type { Logger } from "pino";
import type { SessionBroker } from "../../link/session-broker.ts";
import { Ingress } from "../ingress/ingress.ts";
import { type IngressServer, startIngressServer } from "../ingress/ingress-server.ts";
import type { Workspaces } from "../open-workspaces.ts";
import type { WorkspaceSettings } from "../settings.ts";
import { type SshServer, startSshServer } from "../ssh/ssh-server.ts";
import { ActivityMeter } from "./activity-meter.ts";
import { type DialPod, dialThrough, execThrough } from "./dial-workspace.ts";
import { ViewDirectory } from "./view-directory.ts";
import type { WorkspaceDirectory } from "./workspace-directory.ts";

export interface AccessOptions {
  readonly settings: WorkspaceSettings;
  readonly workspaces: Pick<Workspaces, "view" | "statuses" | "activity">;
  readonly broker: SessionBroker;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The ports through which people reach their workspaces. */
export interface Access {
  readonly ingress: IngressServer["address"] | undefined;
  readonly ssh: SshServer["address"] | undefined;
  close(): Promise<void>;
}

interface Parts extends AccessOptions {
  readonly directory: WorkspaceDirectory;
  readonly dial: DialPod;
  readonly activity: ActivityMeter;
}

/** Opens the ports that the settings name. */
export async function openAccess(options: AccessOptions): Promise<Access> {
  const { workspaces, broker, clock, log } = options;
  const sink = {
    markActive: (instanceId: string): void =>
      void workspaces.activity.mark(instanceId, false).catch((error: unknown) =>
        // The workspace may have gone meanwhile.
        log.debug(
          { event: "activity-not-recorded", instanceId, reason: messageOf(error) },
          "activity-not-recorded",
        ),
      ),
  };
  const activity = new ActivityMeter(sink, clock);
  const directory = new ViewDirectory(workspaces.view, workspaces.statuses);
  const parts = { ...options, directory, dial: dialThrough(broker), activity };
  const ingress = await openIngress(parts);
  if (ingress !== undefined) log.info({ event: "ingress-started", ...ingress.address }, "ingress-started");
  const ssh = await openSsh(parts);
  if (ssh !== undefined) log.info({ event: "ssh-gateway-started", ...ssh.address }, "ssh-gateway-started");
  return {
    ingress: ingress?.address,
    ssh: ssh?.address,
    close: async () => {
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
  const ingress = new Ingress({ ...parts, templates: settings, workspacePort, connectionsPerWorkspace });
  return startIngressServer({ settings: settings.ingress, ingress, clock, log });
}

function openSsh({ settings, broker, ...parts }: Parts): Promise<SshServer> | undefined {
  if (settings.ssh === undefined) return undefined;
  return startSshServer({ ...parts, settings: settings.ssh, exec: execThrough(broker) });
}
