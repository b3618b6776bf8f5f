import type { AgentServiceClient, FetchImageResponse } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { OtherNodes } from "../pods/image-store.ts";
import { normalizeImage } from "../runtime/image-reference.ts";

export interface OtherNodesOptions {
  readonly config: Pick<Config["images"], "otherNodes" | "tagsFrom">;
  readonly clock: Clock;
  /** Returns the client of the connection to the coordinator, or undefined if there is none. */
  readonly client: () => Pick<AgentServiceClient, "fetchImage"> | undefined;
}

/** A transfer without progress ends after this time. It must exceed the time to unpack a large layer. */
const STALL_MS = 120_000;
const BYTES_IN_MIB = 1024 * 1024;

/** Returns a source of images from other nodes, through the coordinator. Undefined if the settings disable it. */
export function otherNodes({ config, clock, client }: OtherNodesOptions): OtherNodes | undefined {
  if (config.otherNodes === "never") return undefined;
  return {
    first: config.otherNodes === "first",
    tags: config.tagsFrom.length > 0,
    fetch: async (reference, namespace, onProgress, signal) => {
      const connected = client();
      if (connected === undefined) throw new Error("the coordinator is not connected");
      const stream = connected.fetchImage({
        ...{ image: normalizeImage(reference), namespace },
        tagSources: [...config.tagsFrom],
      });
      const leave = (): void => stream.cancel();
      let stopWaiting = clock.schedule(STALL_MS, leave);
      signal.addEventListener("abort", leave, { once: true });
      try {
        if (signal.aborted) leave();
        for await (const { fromNode, passedBytes } of stream as AsyncIterable<FetchImageResponse>) {
          stopWaiting();
          stopWaiting = clock.schedule(STALL_MS, leave);
          onProgress(`from node ${fromNode}: ${Math.floor(Number(passedBytes) / BYTES_IN_MIB)} MiB`);
        }
      } catch (error) {
        throw new Error(detailsOf(error), { cause: error });
      } finally {
        stopWaiting();
        signal.removeEventListener("abort", leave);
      }
    },
  };
}

/** Returns an error's details. grpc-js prepends the status's number and name to the message. */
function detailsOf(error: unknown): string {
  if (error instanceof Error && "details" in error && typeof error.details === "string") return error.details;
  return error instanceof Error ? error.message : String(error);
}
