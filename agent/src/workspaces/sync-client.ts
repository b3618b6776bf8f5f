import { type BackOff, backOffMs } from "@forage/common/back-off";
import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import type {
  SyncRequest,
  SyncResponse,
  WorkspaceNodeServiceClient,
  WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { type ClientDuplexStream, status } from "@grpc/grpc-js";
import { type Clock, pause } from "../clock.ts";
import { isServiceError } from "../link/client.ts";

export interface SyncClientOptions {
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  /** Opens a channel with the certificate currently on disk. Rejects before the host has joined. */
  readonly connect: () => Promise<WorkspaceNodeServiceClient>;
  readonly ids: () => readonly string[];
  readonly reportOf: (id: string) => WorkspaceReport | undefined;
  /** Applies the orders. Resolves when they are on disk. */
  readonly apply: (response: SyncResponse) => Promise<void>;
  readonly log: Pick<Log, "info" | "warn">;
}

// Full jitter, because a fleet that lost its coordinator must not reconnect at the same moment.
const RECONNECT: BackOff = { baseMs: 500, capMs: 10_000 };
// A coordinator without support for workspaces is contacted rarely.
const UNSUPPORTED_WAIT_MS = 60_000;

/**
 * Keeps the stream for workspaces connected. Reports contain state, so only the newest report of each workspace is
 * sent.
 */
export class SyncClient {
  readonly #options: SyncClientOptions;
  readonly #dirty = new Set<string>();
  #pump: () => void = () => undefined;
  #problem: string | undefined;

  constructor(options: SyncClientOptions) {
    this.#options = options;
  }

  /** Schedules sending the workspace's report. */
  changed(id: string): void {
    this.#dirty.add(id);
    this.#pump();
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    for (let failures = 0; !signal.aborted; ) {
      let waitMs: number | undefined;
      try {
        await this.#session(signal, () => {
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        const unsupported = isServiceError(error) && error.code === status.UNIMPLEMENTED;
        if (unsupported) waitMs = UNSUPPORTED_WAIT_MS * (0.5 + random());
        this.#note(messageOf(error));
      }
      failures += 1;
      const jittered = random() * backOffMs(failures + 1, RECONNECT);
      await pause(clock, waitMs ?? jittered, signal);
    }
  }

  async #session(signal: AbortSignal, received: () => void): Promise<void> {
    const client = await this.#options.connect();
    const call = client.sync();
    const cancel = () => call.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      if (signal.aborted) return;
      this.#send(call);
      for await (const response of call as AsyncIterable<SyncResponse>) {
        received();
        this.#note(undefined);
        await this.#options.apply(response);
      }
      throw new Error("the coordinator ended the stream for workspaces");
    } finally {
      this.#pump = () => undefined;
      signal.removeEventListener("abort", cancel);
      call.on("error", () => undefined);
      call.cancel();
      client.close();
    }
  }

  /** Sends all reports first, then changed ones. While the stream is slow, reports are coalesced instead of queued. */
  #send(call: ClientDuplexStream<SyncRequest, SyncResponse>): void {
    const { ids, reportOf } = this.#options;
    let writable = true;
    let scheduled = false;
    const write = (full: boolean, of: readonly string[]) => {
      for (const id of of) this.#dirty.delete(id);
      writable = call.write({ full, workspaces: of.flatMap((id) => reportOf(id) ?? []) });
    };
    call.on("drain", () => {
      writable = true;
      this.#pump();
    });
    write(true, ids());
    this.#pump = () => {
      if (!writable || scheduled || this.#dirty.size === 0) return;
      scheduled = true;
      // Changes within one turn of the event loop share a message.
      queueMicrotask(() => {
        scheduled = false;
        if (writable && !call.destroyed) write(false, [...this.#dirty]);
      });
    };
    this.#pump();
  }

  #note(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    if (problem === undefined) this.#options.log.info({ event: "workspace-sync-connected" });
    else this.#options.log.warn({ event: "workspace-sync-failed", reason: problem });
  }
}
