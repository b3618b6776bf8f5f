import type { Clock } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import type { AuthContext, ClientInfo, Connection, ServerChannel, TcpipRequestInfo } from "ssh2";
import type { DialPod, OpenInPod } from "../../forwarding/dial-pod.ts";
import { Shares } from "../../rpc/shares.ts";
import type { AccessStats } from "../access/access-stats.ts";
import type { ActivityMeter } from "../access/activity-meter.ts";
import type { ReachableWorkspace, WorkspaceDirectory } from "../access/workspace-directory.ts";
import { isValid, type ParseKey, type Proof, proofOf, workspaceOf } from "./authenticate.ts";
import { serveSession } from "./ssh-session.ts";
import type { SshSettings } from "./ssh-settings.ts";

export interface SshGatewayOptions {
  readonly settings: Pick<SshSettings, "connections" | "connectionsPerWorkspace">;
  readonly directory: WorkspaceDirectory;
  readonly dial: DialPod;
  readonly openInPod: OpenInPod;
  readonly activity: ActivityMeter;
  readonly stats: AccessStats;
  readonly parseKey: ParseKey;
  /** The limit of open channels to all workspaces. Default: 300. */
  readonly maxChannels?: number;
  readonly clock: Pick<Clock, "schedule">;
  readonly log: Pick<Log, "debug">;
}

/** The time for a person to type a password; OpenSSH's server waits two minutes. */
const LOGIN_TIMEOUT_MS = 60_000;
/** The most login attempts, as with OpenSSH. A client with many keys tries each. */
const MAX_ATTEMPTS = 6;
/** The most connections that have not logged in: they use memory and cost key exchanges. */
const MAX_STRANGERS = 64;
/** The most terminals, forwarded ports and file transfers of one connection. */
const MAX_CHANNELS = 64;
/**
 * The most channels of all connections. Each is a session of an agent. Together with the visits of
 * the ingress they stay below the limit of all sessions, so that logs and commands still work while
 * workspaces are busy.
 */
const MAX_OPEN_CHANNELS = 300;
const CHANNELS_PER_WORKSPACE = 128;
/** Host names that mean the workspace itself. */
const OWN_HOSTS = ["localhost", "127.0.0.1", "::1"];

/** A client that has logged in. */
interface Login {
  readonly instanceId: string;
  readonly proof: Proof;
}

interface ForwardRequest {
  readonly accept: () => ServerChannel;
  readonly reject: () => void;
  /** Releases the slot of the channel. */
  readonly release: () => void;
}

/**
 * Connects SSH clients with their workspaces through sessions of the agents, so that a workspace
 * needs no SSH server.
 */
export class SshGateway {
  readonly #options: SshGatewayOptions;
  readonly #connections = new Map<Connection, Login | undefined>();
  readonly #shares: Shares;

  constructor(options: SshGatewayOptions) {
    this.#options = options;
    const { maxChannels: places = MAX_OPEN_CHANNELS } = options;
    this.#shares = new Shares({
      what: "SSH channels of workspaces",
      total: places,
      ofUser: CHANNELS_PER_WORKSPACE,
      isFair: true,
    });
  }

  /** Serves one connection. */
  serve(connection: Connection, { ip }: Pick<ClientInfo, "ip">): void {
    const { settings, log, stats } = this.#options;
    // Without a listener, an error event would end the process.
    connection.on("error", (error) =>
      log.debug({ event: "ssh-connection-failed", address: ip, reason: messageOf(error) }),
    );
    const strangers = [...this.#connections.values()].filter((login) => login === undefined).length;
    if (this.#connections.size >= settings.connections || strangers >= MAX_STRANGERS) {
      stats.refused("ssh", "too-many");
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
    let login: Login | undefined;
    connection.on("authentication", (context) => {
      attempts += context.method === "none" ? 0 : 1;
      login = this.#authenticate(context);
      if (login !== undefined) return context.accept();
      if (context.method !== "none") stats.refused("ssh", "not-authorized");
      if (attempts < MAX_ATTEMPTS) return context.reject(["publickey", "password"]);
      return connection.end();
    });
    connection.once("ready", () => {
      cancel();
      if (login !== undefined) this.#welcome(connection, login);
    });
  }

  /** Closes the connections to a changed workspace whose key or token is no longer valid. */
  recheck(instanceId: string): void {
    for (const [connection, login] of this.#connections) {
      if (login?.instanceId !== instanceId) continue;
      const workspace = this.#options.directory.byInstanceId(instanceId);
      if (workspace === undefined || !isValid(login.proof, workspace)) connection.end();
    }
  }

  /** Closes all connections. */
  close(): void {
    for (const connection of this.#connections.keys()) connection.end();
  }

  #authenticate(context: AuthContext): Login | undefined {
    const { directory, parseKey } = this.#options;
    const workspace = workspaceOf(context.username, directory);
    const proof = workspace && proofOf(context, workspace, parseKey);
    return workspace && proof && { instanceId: workspace.instanceId, proof };
  }

  #welcome(connection: Connection, login: Login): void {
    const { settings, activity, openInPod, stats } = this.#options;
    const { instanceId } = login;
    const open = [...this.#connections.values()].filter((it) => it?.instanceId === instanceId).length;
    if (open >= settings.connectionsPerWorkspace) {
      stats.refused("ssh", "too-many");
      connection.end();
      return;
    }
    this.#connections.set(connection, login);
    const over = new AbortController();
    const ends = [activity.begin(instanceId), stats.begin("ssh")];
    connection.once("close", () => {
      for (const end of ends) end();
      over.abort();
    });
    const channels = new Set<() => void>();
    /**
     * Acquires a slot for a channel. Returns a function that releases it, or undefined if none is
     * free.
     */
    const acquireChannel = (): (() => void) | undefined => {
      const release = channels.size < MAX_CHANNELS ? this.#shares.tryAcquire(instanceId) : undefined;
      if (release === undefined) {
        stats.refused("ssh", "too-many");
        return undefined;
      }
      channels.add(release);
      return () => {
        release();
        channels.delete(release);
      };
    };
    connection.once("close", () => {
      for (const release of channels) release();
    });
    connection.on("session", (accept, reject) => {
      const release = acquireChannel();
      if (release === undefined) return reject();
      const session = accept();
      session.once("close", release);
      return serveSession(session, {
        open: (kind) => openInPod(this.#podOf(instanceId), kind, over.signal),
        moved: (direction, bytes) => stats.moved("ssh", direction, bytes),
      });
    });
    connection.on("tcpip", (accept, reject, info) => {
      const release = acquireChannel();
      if (release === undefined) return reject();
      return this.#forward(instanceId, info, { accept, reject, release });
    });
  }

  /**
   * Forwards a connection to a port of the workspace. Other hosts are refused, so that the gateway
   * gives no access to the network around it.
   */
  #forward(
    instanceId: string,
    { destIP, destPort }: TcpipRequestInfo,
    { accept, reject, release }: ForwardRequest,
  ): void {
    const refuse = (): void => {
      release();
      reject();
    };
    if (!OWN_HOSTS.includes(destIP) || destPort < 1 || destPort > 65_535) {
      this.#options.stats.refused("ssh", "forbidden-target");
      refuse();
      return;
    }
    try {
      const tunnel = this.#options.dial(this.#podOf(instanceId), destPort);
      const channel = accept();
      channel.once("close", release);
      channel.on("error", () => tunnel.destroy());
      channel.once("close", () => tunnel.destroy());
      tunnel.on("error", () => channel.destroy());
      tunnel.pipe(channel).pipe(tunnel);
    } catch {
      refuse();
    }
  }

  /**
   * Returns the workspace's current pod, which may have been assigned to a node after the client
   * connected.
   */
  #podOf(instanceId: string): NonNullable<ReachableWorkspace["pod"]> {
    const pod = this.#options.directory.byInstanceId(instanceId)?.pod;
    if (pod === undefined) throw new Error("the workspace is not running");
    return pod;
  }
}
