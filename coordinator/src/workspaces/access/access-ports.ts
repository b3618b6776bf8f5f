import type { Socket } from "node:net";
import type { Log } from "@forage/common/log";
import type { Clock } from "../../time/clock.ts";
import { type IngressServer, startIngressServer } from "../ingress/ingress-server.ts";
import type { WorkspaceSettings } from "../settings.ts";
import { openSshPort, type SshPort } from "../ssh/ssh-port.ts";
import type { EntryPoint } from "./access-stats.ts";

/**
 * The open ports through which users reach their workspaces. They stay open when this coordinator
 * becomes the leader.
 */
export interface AccessPorts {
  readonly ingress: IngressServer | undefined;
  readonly ssh: SshPort | undefined;
}

export interface AccessPortsOptions {
  readonly settings: WorkspaceSettings;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn" | "info">;
  /** Passes a connection on to the leader. */
  readonly pass: (entryPoint: EntryPoint, connection: Socket) => void;
}

/**
 * Opens the configured ports. Connections are passed on to the leader until this coordinator leads
 * itself.
 */
export async function openAccessPorts({
  settings,
  clock,
  log,
  pass,
}: AccessPortsOptions): Promise<AccessPorts> {
  if (!settings.enabled) return { ingress: undefined, ssh: undefined };
  const ingress =
    settings.ingress &&
    (await startIngressServer({
      ...{ settings: settings.ingress, clock, log },
      pass: (connection) => pass("ingress", connection),
    }));
  const ssh = settings.ssh && (await openSshPort(settings.ssh, (connection) => pass("ssh", connection)));
  return { ingress, ssh };
}
