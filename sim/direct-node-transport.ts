import type { Clock } from "@forage/common/clock";
import { nodeId } from "@forage/identity";
import type { SyncRequest } from "@forage/proto/forage/workspaces/v1/workspaces";
import { Channel } from "../coordinator/src/link/channel.ts";
import type { CallContext } from "../coordinator/src/rpc/caller.ts";
import type { WorkspaceHandlers } from "../coordinator/src/workspaces/open-workspaces.ts";
import type {
  NodeTransport,
  SyncReceiver,
  SyncStream,
} from "../coordinator/test/support/workspaces/node-transport.ts";

export interface DirectTransportOptions {
  readonly node: string;
  readonly handlers: WorkspaceHandlers["node"];
  readonly clock: Pick<Clock, "schedule">;
}

const LATENCY_MS = 20;
/** The limit of waiting messages of a stream, which no test reaches. */
const CAPACITY = 1_000;

/** Calls the handlers of WorkspaceNodeService without a port. Each message takes its time on the clock. */
export class DirectNodeTransport implements NodeTransport {
  readonly #options: DirectTransportOptions;
  readonly #over = new AbortController();

  constructor(options: DirectTransportOptions) {
    this.#options = options;
  }

  sync(receiver: SyncReceiver): SyncStream {
    const requests = new Channel<SyncRequest>(CAPACITY);
    const gone = new AbortController();
    void this.#serve(requests, gone.signal, receiver);
    return {
      write: (request) => this.#later(() => void requests.push(request)),
      cancel: () => {
        gone.abort();
        requests.close();
      },
    };
  }

  async upload(parts: Parameters<NodeTransport["upload"]>[0]): ReturnType<NodeTransport["upload"]> {
    await new Promise<void>((resolve) => this.#later(resolve));
    return this.#options.handlers.upload(streamOf(parts), this.#context(new AbortController().signal));
  }

  close(): void {
    this.#over.abort();
  }

  async #serve(requests: Channel<SyncRequest>, gone: AbortSignal, receiver: SyncReceiver): Promise<void> {
    try {
      for await (const response of this.#options.handlers.sync(requests, this.#context(gone)))
        this.#later(() => {
          if (!gone.aborted) receiver.receive(response);
        });
    } catch (error) {
      if (!gone.aborted) receiver.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #later(run: () => void): void {
    this.#options.clock.schedule(LATENCY_MS, () => {
      if (!this.#over.signal.aborted) run();
    });
  }

  #context(signal: AbortSignal): CallContext {
    const { node } = this.#options;
    const caller = { type: "node", nodeId: nodeId(node) } as const;
    return { method: "/forage.workspaces.v1.WorkspaceNodeService", caller, peer: `${node}:1`, signal };
  }
}

async function* streamOf<Part>(parts: readonly Part[]): AsyncGenerator<Part> {
  yield* parts;
}
