/**
 * A bounded queue between one producer and one consumer. `push` waits while it is full, so that a slow consumer slows down
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

  /** Adds an item. Returns false, without adding it, if the channel is closed. */
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

  /** Closes the channel. The items in it can still be read. Then the iteration ends, with the error if one is given. */
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
