/**
 * A bounded queue between one producer and one consumer: `push` waits while it is full, so a slow consumer holds back
 * its producer.
 */
export class Channel<T> implements AsyncIterable<T> {
  readonly #capacity: number;
  readonly #items: T[] = [];
  #closed = false;
  #error: unknown;
  #readable: (() => void) | undefined;
  #writable: (() => void) | undefined;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Returns false when the channel is closed, so that no reader is left. */
  async push(item: T): Promise<boolean> {
    while (this.#items.length >= this.#capacity && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#writable = resolve;
      });
    }
    if (this.#closed) return false;
    this.#items.push(item);
    this.#readable?.();
    return true;
  }

  /** Closes the channel. Items in it are still read, and then the iteration ends, with the error if there is one. */
  close(error?: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#error = error;
    this.#readable?.();
    this.#writable?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    try {
      while (true) {
        const item = this.#items.shift();
        if (item !== undefined) {
          this.#writable?.();
          yield item;
        } else if (this.#closed) {
          if (this.#error !== undefined) throw this.#error;
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#readable = resolve;
          });
        }
      }
    } finally {
      this.close();
    }
  }
}
