import type { Clock } from "@forage/common/clock";
import { messageOf } from "@forage/common/message-of";
import type { Logger } from "pino";
import type { AuthContext, ClientInfo, Connection, ServerChannel, TcpipRequestInfo } from "ssh2";
import type { ActivityMeter } from "../access/activity-meter.ts";
import type { DialPod, ExecInPod } from "../access/dial-workspace.ts";
import type { ReachableWorkspace, WorkspaceDirectory } from "../access/workspace-directory.ts";
import { authenticates, type ParseKey, workspaceOf } from "./authenticate.ts";
import { serveSession } from "./ssh-session.ts";
import type { SshSettings } from "./ssh-settings.ts";

export interface SshGatewayOptions {
  readonly settings: Pick<SshSettings, "connections" | "connectionsPerWorkspace">;
  readonly directory: WorkspaceDirectory;
  readonly dial: DialPod;
  readonly exec: ExecInPod;
  readonly activity: ActivityMeter;
  readonly parseKey: ParseKey;
  readonly clock: Pick<Clock, "schedule">;
  readonly log: Pick<Logger, "debug">;
}

/** A person types a password within this time; OpenSSH's server waits two minutes. */
const LOGIN_TIMEOUT_MS = 60_000;
/** OpenSSH's default. A client with many keys tries each. */
const MAX_ATTEMPTS = 6;
/** Connections that have not proved who they are: they hold memory and cost key exchanges. */
const MAX_STRANGERS = 64;
/** Terminals, forwarded ports and file transfers of one connection. */
const MAX_CHANNELS = 64;
/** Hosts that mean the workspace itself. */
const OWN_HOSTS = ["localhost", "127.0.0.1", "::1"];

/** Connects SSH clients with their workspaces, through sessions of the agents: a workspace needs no SSH server. */
export class SshGateway {
  readonly #options: SshGatewayOptions;
  readonly #connections = new Map<Connection, string | undefined>();

  constructor(options: SshGatewayOptions) {
    this.#options = options;
  }

  /** Serves one connection. */
  serve(connection: Connection, { ip }: Pick<ClientInfo, "ip">): void {
    const { settings, log } = this.#options;
    // Without a listener an error ends the process.
    connection.on("error", (error) =>
      log.debug(
        { event: "ssh-connection-failed", address: ip, reason: messageOf(error) },
        "ssh-connection-failed",
      ),
    );
    const strangers = [...this.#connections.values()].filter((instance) => instance === undefined).length;
    if (this.#connections.size >= settings.connections || strangers >= MAX_STRANGERS) {
      connection.end();
      return;
    }
    this.#connections.set(connection, undefined);
    const cancel = this.#options.clock.schedule(LOGIN_TIMEOUT_MS, () => connection.end());
    connection.once("close", () => {
      cancel();
      this.#connections.delete(connection);
    });
    let attempts = 0;
    let workspace: ReachableWorkspace | undefined;
    connection.on("authentication", (context) => {
      attempts += context.method === "none" ? 0 : 1;
      workspace = this.#authenticate(context);
      if (workspace !== undefined) context.accept();
      else if (attempts < MAX_ATTEMPTS) context.reject(["publickey", "password"]);
      else connection.end();
    });
    connection.once("ready", () => {
      cancel();
      if (workspace !== undefined) this.#welcome(connection, workspace);
    });
  }

  /** Ends all connections. */
  close(): void {
    for (const connection of this.#connections.keys()) connection.end();
  }

  #authenticate(context: AuthContext): ReachableWorkspace | undefined {
    const { directory, parseKey } = this.#options;
    const workspace = workspaceOf(context.username, directory);
    return workspace !== undefined && authenticates(context, workspace, parseKey) ? workspace : undefined;
  }

  #welcome(connection: Connection, { instanceId }: ReachableWorkspace): void {
    const { settings, activity, exec } = this.#options;
    const open = [...this.#connections.values()].filter((instance) => instance === instanceId).length;
    if (open >= settings.connectionsPerWorkspace) {
      connection.end();
      return;
    }
    this.#connections.set(connection, instanceId);
    const over = new AbortController();
    const done = activity.begin(instanceId);
    connection.once("close", () => {
      done();
      over.abort();
    });
    let channels = 0;
    /** Counts a channel until it closes; false if there are too many. */
    const admit = (): boolean => channels < MAX_CHANNELS;
    const count = (channel: { once(event: "close", run: () => void): unknown }): void => {
      channels += 1;
      channel.once("close", () => {
        channels -= 1;
      });
    };
    connection.on("session", (accept, reject) => {
      if (!admit()) return reject();
      const session = accept();
      count(session);
      return serveSession(session, (options) => exec(this.#podOf(instanceId), options, over.signal));
    });
    connection.on("tcpip", (accept, reject, info) => {
      if (!admit()) return reject();
      return this.#forward(instanceId, accept, reject, info, count);
    });
  }

  /** Forwards a connection to a port of the workspace. Other hosts are refused: the gateway is no way into the network around it. */
  #forward(
    instanceId: string,
    accept: () => ServerChannel,
    reject: () => void,
    { destIP, destPort }: TcpipRequestInfo,
    count: (channel: ServerChannel) => void,
  ): void {
    if (!OWN_HOSTS.includes(destIP) || destPort < 1 || destPort > 65_535) {
      reject();
      return;
    }
    try {
      const tunnel = this.#options.dial(this.#podOf(instanceId), destPort);
      const channel = accept();
      count(channel);
      channel.on("error", () => tunnel.destroy());
      channel.once("close", () => tunnel.destroy());
      tunnel.on("error", () => channel.destroy());
      tunnel.pipe(channel).pipe(tunnel);
    } catch {
      reject();
    }
  }

  /** The pod at present: it may have got its node after the client connected. */
  #podOf(instanceId: string): NonNullable<ReachableWorkspace["pod"]> {
    const pod = this.#options.directory.byInstanceId(instanceId)?.pod;
    if (pod === undefined) throw new Error("the workspace does not run");
    return pod;
  }
}
