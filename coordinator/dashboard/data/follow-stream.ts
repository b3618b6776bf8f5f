import { doubtSession } from "./session.ts";

export interface FollowOptions {
  /** Called with the data of each message, in order. */
  readonly onMessage: (data: string) => void;
  /** Called when the stream breaks. It is opened again. */
  readonly onLost?: () => void;
  /** Called when the coordinator answered with an error. The stream is opened again later. */
  readonly onRefused?: () => void;
  /** The delay before the next attempt after a refusal. */
  readonly retryMs: number;
}

/**
 * Follows a stream of server-sent events until the returned function is called. A hidden window has no stream: a browser allows few of
 * them, and the stream begins with the present state when the window is shown again.
 */
export function followStream(path: string, options: FollowOptions): () => void {
  const { onMessage, onLost, onRefused, retryMs } = options;
  let source: EventSource | undefined;
  let timer = 0;
  const close = (): void => {
    clearTimeout(timer);
    timer = 0;
    source?.close();
    source = undefined;
  };
  const open = (): void => {
    const opened = new EventSource(`api/${path}`);
    source = opened;
    opened.onmessage = ({ data }) => onMessage(data as string);
    opened.onerror = () => {
      onLost?.();
      // Without an answer the browser tries again by itself. After an error it closes the stream and doesn't expose the status.
      if (opened.readyState !== EventSource.CLOSED) return;
      close();
      doubtSession();
      onRefused?.();
      timer = window.setTimeout(shown, retryMs);
    };
  };
  const shown = (): void => {
    if (document.hidden) close();
    else if (source === undefined) open();
  };
  document.addEventListener("visibilitychange", shown);
  shown();
  return () => {
    document.removeEventListener("visibilitychange", shown);
    close();
  };
}
