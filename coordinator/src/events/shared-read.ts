import type { EventPage } from "./event-log.ts";

interface Question {
  /** The number after which events are read. */
  readonly after: number;
  readonly limit: number;
  /**
   * The number of the newest written event. Older events do not change, so that equal requests have
   * equal results.
   */
  readonly newest: number;
}

/**
 * Shares one read of the store among all equal requests. Watchers that have read everything make
 * equal requests after each write, and separate reads would take three quarters of the time for a
 * watcher.
 */
export class SharedRead {
  #last: { readonly question: Question; readonly page: Promise<EventPage> } | undefined;

  read(question: Question, load: () => Promise<EventPage>): Promise<EventPage> {
    const last = this.#last;
    if (last !== undefined && isSame(last.question, question)) return last.page;
    const page = load();
    const kept = { question, page };
    this.#last = kept;
    page.catch(() => {
      if (this.#last === kept) this.#last = undefined;
    });
    return page;
  }
}

function isSame(a: Question, b: Question): boolean {
  return a.after === b.after && a.limit === b.limit && a.newest === b.newest;
}
