import { Signal } from "../state/signal.ts";
import type { Board } from "./board.ts";
import type { Subject } from "./topic.ts";

/**
 * What a stream sends of a subject: everything at once, then the way to each newer state. It holds the one state that it
 * has told, shared with all others that are as far, so a reader that stalls gets one step to the newest state.
 */
export async function* follow<S>(
  board: Board,
  options: {
    /** Asked again whenever there may be news: it can change with where the client is. */
    readonly subject: () => Subject<S>;
    /** Sent in place of a state that this reader may not see. */
    readonly instead?: (state: S) => readonly Buffer[] | undefined;
    /** Beyond what the subject itself depends on. */
    readonly alsoOn: readonly string[];
    readonly signal: AbortSignal;
  },
): AsyncGenerator<Buffer> {
  const news = new Signal();
  const wake = (): void => news.raise();
  let subject = options.subject();
  let reading = board.read(subject, wake);
  const stopWatching = options.alsoOn.map((key) => board.watch(key, wake));
  try {
    let told: S | undefined;
    while (!options.signal.aborted) {
      const { state, messages } = reading.topic.after(told);
      told = state;
      for (const message of options.instead?.(state) ?? messages) yield message;
      await news.wait(options.signal);
      const next = options.subject();
      if (next.key === subject.key) continue;
      reading.close();
      subject = next;
      reading = board.read(subject, wake);
    }
  } finally {
    reading.close();
    for (const stop of stopWatching) stop();
  }
}
