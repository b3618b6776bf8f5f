import { open } from "./api.ts";
import { type ReadOptions, readMessages } from "./read-messages.ts";

export type FollowOptions = Pick<ReadOptions, "onMessage" | "onLost" | "onRefused" | "retryMs">;

/**
 * Follows a stream of server-sent events until the returned function is called. While the window is
 * hidden the stream is closed, because browsers allow only a few; a new stream begins with the
 * present state.
 */
export function followStream(path: string, options: FollowOptions): () => void {
  let reading: AbortController | undefined;
  const close = (): void => {
    reading?.abort();
    reading = undefined;
  };
  const shown = (): void => {
    if (document.hidden) close();
    else if (reading === undefined) {
      reading = new AbortController();
      const { signal } = reading;
      void readMessages({ ...options, signal, open: (until) => open(path, until) });
    }
  };
  document.addEventListener("visibilitychange", shown);
  shown();
  return () => {
    document.removeEventListener("visibilitychange", shown);
    close();
  };
}
