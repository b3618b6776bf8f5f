import { CoordinatorError } from "../errors.ts";
import type { Tunnel } from "../link/session-broker.ts";
import { SocketLikeStream } from "./socket-like-stream.ts";

/** Receives the number of transferred bytes. `in` is the direction to the pod. */
export type CountBytes = (direction: "in" | "out", bytes: number) => void;

/** The size of frames, which is about that of the agent's own. The agent writes a frame in one step. */
const FRAME_BYTES = 32 * 1024;

/** One connection to a port of a pod, as a stream with back-pressure in both directions. */
export class TunnelStream extends SocketLikeStream {
  readonly #tunnel: Tunnel;
  readonly #onClose: () => void;
  readonly #moved: CountBytes | undefined;
  #resume: (() => void) | undefined;

  constructor(tunnel: Tunnel, onClose: () => void, moved?: CountBytes) {
    super();
    this.#moved = moved;
    this.#tunnel = tunnel;
    this.#onClose = onClose;
    void this.#receive();
  }

  override _read(): void {
    this.#resume?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(chunk).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    // If the tunnel has ended already, no frame is needed.
    this.#tunnel.toAgent.push({ frame: { $case: "stdinClosed", value: true } }).then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#resume?.();
    this.#tunnel.toAgent.close();
    this.#tunnel.fromAgent.close();
    this.#onClose();
    done(error);
  }

  async #send(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; at += FRAME_BYTES) {
      const value = chunk.subarray(at, at + FRAME_BYTES);
      this.#moved?.("in", value.length);
      if (await this.#tunnel.toAgent.push({ frame: { $case: "stdin", value } })) continue;
      throw new CoordinatorError("UNAVAILABLE", "the connection to the pod has ended");
    }
  }

  async #receive(): Promise<void> {
    let ended = false;
    const end = (): void => {
      if (!ended) this.push(null);
      ended = true;
    };
    try {
      for await (const { frame } of this.#tunnel.fromAgent) {
        if (this.destroyed) return;
        if (frame?.$case === "stdout") this.#moved?.("out", frame.value.length);
        if (frame?.$case === "stdout" && frame.value.length > 0 && !this.push(frame.value))
          await this.#readable();
        if (frame?.$case === "stdoutClosed") end();
        if (frame?.$case !== "end") continue;
        if (frame.value.error !== "") throw new CoordinatorError("FAILED_PRECONDITION", frame.value.error);
        end();
        // The pod has closed both directions, so further writes would be lost.
        if (!this.writableEnded) this.end();
        return;
      }
      this.destroy();
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error("the connection broke", { cause: error }));
    }
  }

  #readable(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = () => {
        this.#resume = undefined;
        resolve();
      };
      if (this.destroyed) this.#resume();
    });
  }
}
