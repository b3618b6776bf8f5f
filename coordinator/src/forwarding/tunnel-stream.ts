import { Duplex } from "node:stream";
import { CoordinatorError } from "../errors.ts";
import type { Tunnel } from "../link/session-broker.ts";

/** Receives the number of bytes that moved; `in`: to the pod. */
export type CountBytes = (direction: "in" | "out", bytes: number) => void;

/** The agent writes a frame at once, and its own frames have about this size. */
const FRAME_BYTES = 32 * 1024;

/**
 * One connection to a port of a pod, as a stream with back-pressure in both directions. Each side ends by itself. It has the methods
 * of a socket that Node's HTTP client calls; they do nothing, as there is no socket.
 */
export class TunnelStream extends Duplex {
  readonly #tunnel: Tunnel;
  readonly #onClose: () => void;
  readonly #moved: CountBytes | undefined;
  #resume: (() => void) | undefined;

  constructor(tunnel: Tunnel, onClose: () => void, moved?: CountBytes) {
    super({ allowHalfOpen: true });
    this.#moved = moved;
    this.#tunnel = tunnel;
    this.#onClose = onClose;
    void this.#receive();
  }

  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {
    this.#resume?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(chunk).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    // A connection that is over already needs no end.
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
      throw new CoordinatorError("UNAVAILABLE", "the connection to the pod is over");
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
          await this.#wanted();
        if (frame?.$case === "stdoutClosed") end();
        if (frame?.$case !== "end") continue;
        if (frame.value.error !== "") throw new CoordinatorError("FAILED_PRECONDITION", frame.value.error);
        end();
        // The pod has closed both sides: what is still written goes nowhere.
        if (!this.writableEnded) this.end();
        return;
      }
      this.destroy();
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error("the connection broke", { cause: error }));
    }
  }

  #wanted(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = () => {
        this.#resume = undefined;
        resolve();
      };
      if (this.destroyed) this.#resume();
    });
  }
}
