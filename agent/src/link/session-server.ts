import { messageOf } from "@forage/common/message-of";
import type {
  AgentServiceClient,
  CopyOptions,
  SessionEnd,
  SessionRequest,
  SftpOptions,
  SupportFile,
} from "@forage/proto/forage/agent/v1/agent";
import type { ImagePushes } from "../images/image-push.ts";
import type { ImageReads } from "../images/image-reads.ts";
import type { FoundContainer } from "../pods/find-container.ts";
import { FrameWriter } from "../sessions/frame-writer.ts";
import { readInput } from "../sessions/read-input.ts";
import { type AttachSources, serveAttach } from "../sessions/serve-attach.ts";
import { type StartCopy, serveCopy } from "../sessions/serve-copy.ts";
import { type ExamineHost, serveExamine } from "../sessions/serve-examine.ts";
import { type RunExec, serveExec } from "../sessions/serve-exec.ts";
import {
  type PullImage,
  serveImagePull,
  serveImagePush,
  serveImageRead,
  serveImageRemove,
} from "../sessions/serve-images.ts";
import { type ReadLog, serveLogs } from "../sessions/serve-logs.ts";
import { type DialPod, servePortForward } from "../sessions/serve-port-forward.ts";
import { serveSupport } from "../sessions/serve-support.ts";
import type { Session } from "../sessions/session.ts";

/** The objects that sessions attach to. */
export interface SessionHost extends Pick<AttachSources, "openInput" | "exitCodeOf" | "nowMs"> {
  /**
   * Finds the container of a pod; an empty name means the main container. Returns undefined if the pod or container doesn't
   * exist.
   */
  find(podUid: string, container: string): FoundContainer | undefined;
  /**
   * Returns a text that identifies the pod's current network and changes with it. Undefined while the pod has no
   * network.
   */
  networkOf(podUid: string): string | undefined;
  readonly readLog: ReadLog;
  readonly exec: RunExec;
  readonly dial: DialPod;
  readonly copy: StartCopy<CopyOptions>;
  readonly sftp: StartCopy<SftpOptions>;
  readonly images: Pick<ImagePushes, "push" | "remove">;
  readonly imageReads: Pick<ImageReads, "send">;
  readonly pullImage: PullImage;
  readonly examine: ExamineHost;
  /** Creates the agent's files for a support bundle. */
  readonly support: () => AsyncIterable<SupportFile>;
}

// Each session has a stream and, for an exec, a process on the host. A browser opens a dozen connections through one
// port-forward.
const SESSIONS_MAX = 256;

interface OpenSession {
  readonly ending: AbortController;
  readonly podUid: string;
  readonly isForward: boolean;
  /** The network of a port-forward, which ends when the pod moves to another one. */
  readonly network?: string;
}

/** Serves sessions for operators, each on a separate stream that the agent opens. */
export class SessionServer {
  readonly #host: SessionHost;
  readonly #open = new Set<OpenSession>();

  constructor(host: SessionHost) {
    this.#host = host;
  }

  get count(): number {
    return this.#open.size;
  }

  open(request: SessionRequest, client: AgentServiceClient): void {
    const ending = new AbortController();
    const stream = client.serve();
    stream.on("error", () => ending.abort());
    stream.on("close", () => ending.abort());
    const writer = new FrameWriter(stream, ending.signal);
    const refusal = this.#refusalOf(request);
    const session = this.#note(request, ending);
    // This frame must be first, before anything that a session writes at once.
    const opened = writer.send({ $case: "sessionId", value: request.sessionId });
    const served = refusal
      ? Promise.reject(new Error(refusal))
      : this.#serve(request, writer, ending.signal, (consumer) => {
          void readInput(consumer, stream).finally(() => ending.abort());
        });
    // Awaited only after the first frame was sent.
    served.catch(() => undefined);
    void opened
      .then(() => served)
      .catch((error) => ({ exitCode: 1, error: reasonOf(ending.signal, error) }))
      .then((end) => {
        // Also written if the session was ended from outside, because the client is still connected to read the reason.
        if (!stream.destroyed) stream.write({ frame: { $case: "end", value: end } });
        stream.end();
      })
      .finally(() => {
        this.#open.delete(session);
        ending.abort();
      });
  }

  /** Must be called after each change of the pod. */
  podChanged(podUid: string): void {
    for (const { ending, network, podUid: uid } of this.#open) {
      if (uid === podUid && network !== undefined && this.#host.networkOf(podUid) !== network)
        ending.abort(new Error("the pod no longer exists"));
    }
  }

  close(): void {
    for (const { ending } of this.#open) ending.abort(new Error("the agent is stopping"));
  }

  #refusalOf({ podUid, kind }: SessionRequest): string | undefined {
    const open = this.#open.size;
    if (open >= SESSIONS_MAX) return `${SESSIONS_MAX} sessions are open on this node`;
    if (kind?.$case !== "portForward") return undefined;
    const ofPod = [...this.#open].filter((it) => it.isForward && it.podUid === podUid).length;
    // A pod's ports may have many visitors. They may use at most half of the remaining sessions, so that other pods
    // always get some.
    return ofPod >= SESSIONS_MAX - open ? `${ofPod} connections to ports of this pod are open` : undefined;
  }

  #note({ podUid, kind }: SessionRequest, ending: AbortController): OpenSession {
    const isForward = kind?.$case === "portForward";
    const network = isForward ? this.#host.networkOf(podUid) : undefined;
    const session = { ending, podUid, isForward, ...(network !== undefined && { network }) };
    this.#open.add(session);
    return session;
  }

  async #serve(
    { podUid, container, kind }: SessionRequest,
    writer: FrameWriter,
    signal: AbortSignal,
    readInput: Session["readInput"],
  ): Promise<SessionEnd> {
    const host = this.#host;
    const onHost = { writer, signal, readInput };
    switch (kind?.$case) {
      case "imagePush":
        return serveImagePush(onHost, kind.value, host.images);
      case "imagePull":
        return serveImagePull(onHost, kind.value, host.pullImage);
      case "imageRead":
        return serveImageRead(onHost, kind.value, host.imageReads);
      case "imageRemove":
        return serveImageRemove(onHost, kind.value, host.images);
      case "examine":
        return serveExamine(onHost, kind.value, host.examine);
      case "support":
        return serveSupport(writer, signal, readInput, host.support);
    }
    const found = host.find(podUid, container);
    if (found === undefined) throw new Error("there is no such container on this node");
    const session: Session = { podUid, found, writer, signal, readInput };
    switch (kind?.$case) {
      case "logs":
        return serveLogs(session, kind.value, host.readLog);
      case "exec":
        if (kind.value.attach) return serveAttach(session, kind.value, host);
        return serveExec(session, kind.value, host.exec);
      case "portForward":
        return servePortForward(session, kind.value, host.dial);
      case "copy":
        return serveCopy(session, kind.value, host.copy);
      case "sftp":
        return serveCopy(session, kind.value, host.sftp);
      case undefined:
        throw new Error("the session request is empty");
      default:
        return kind satisfies never;
    }
  }
}

/**
 * Returns the reason of a session's end. An external end has its own reason. If the client has disconnected, no one
 * reads it.
 */
function reasonOf(signal: AbortSignal, error: unknown): string {
  const { reason } = signal;
  if (signal.aborted && reason instanceof Error && reason.name !== "AbortError") return reason.message;
  return messageOf(error);
}
