import { type SubscribeResponse, WorkspacePhase } from "@forage/proto/core";
import type { ClientReadableStream } from "@grpc/grpc-js";

/** Records what one subscriber receives of workspaces. */
export class Subscription {
  messages = 0;
  readonly #stream: ClientReadableStream<SubscribeResponse>;
  readonly #phases = new Map<string, WorkspacePhase[]>();
  readonly #versions = new Map<string, bigint>();
  readonly #stopped = new Map<string, number>();
  #fault: Error | undefined;

  constructor(stream: ClientReadableStream<SubscribeResponse>) {
    this.#stream = stream;
    stream.on("error", (error: Error) => this.#fail(error));
    stream.on("end", () => this.#fail(new Error("the stream ended")));
    stream.on("data", (response: SubscribeResponse) => this.#add(response));
  }

  /** Stops reading, until `resume`. */
  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  /** Ends the stream, which then fails with CANCELLED. */
  cancel(): void {
    this.#stream.cancel();
  }

  /**
   * Returns the phases of a workspace in the order of their arrival, without repetitions in a row. Throws if the stream
   * has failed, or if a status was not newer than the previous one.
   */
  phasesOf(id: string): readonly WorkspacePhase[] {
    if (this.#fault !== undefined) throw this.#fault;
    return this.#phases.get(id) ?? [];
  }

  /** Returns how often STOPPED was received for the workspace. */
  stoppedOf(id: string): number {
    return this.#stopped.get(id) ?? 0;
  }

  #add({ status }: SubscribeResponse): void {
    this.messages += 1;
    const { id = "", statusVersion = 0n, phase = WorkspacePhase.UNKNOWN } = status ?? {};
    const before = this.#versions.get(id) ?? 0n;
    if (statusVersion <= before) this.#fail(new Error(`${id} has version ${statusVersion} after ${before}`));
    this.#versions.set(id, statusVersion);
    if (phase === WorkspacePhase.STOPPED) this.#stopped.set(id, this.stoppedOf(id) + 1);
    const phases = this.#phases.get(id) ?? [];
    this.#phases.set(id, phases);
    if (phases.at(-1) !== phase) phases.push(phase);
  }

  #fail(fault: Error): void {
    this.#fault ??= fault;
  }
}
