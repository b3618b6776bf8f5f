export interface DueTimer {
  readonly atMs: number;
  /** Calls the timer's function, unless the timer has been cancelled. */
  fire(): void;
}

interface Timer extends DueTimer {
  readonly order: number;
  isOpen: boolean;
}

/** Cancelled timers stay in the heap until they outnumber the others by this factor, so that cancelling is cheap. */
const MAX_CANCELLED_SHARE = 2;
const LEAST_COMPACTED = 64;

/** Timers in the order of their due times, and of their creation within the same time: a binary heap. */
export class TimerQueue {
  #heap: Timer[] = [];
  #order = 0;
  #open = 0;

  /** The number of timers that have neither fired nor been cancelled. */
  get size(): number {
    return this.#open;
  }

  add(atMs: number, run: () => void): () => void {
    const close = (): boolean => {
      if (!timer.isOpen) return false;
      timer.isOpen = false;
      this.#open--;
      return true;
    };
    const timer: Timer = {
      atMs,
      order: this.#order++,
      isOpen: true,
      fire: () => {
        if (close()) run();
      },
    };
    this.#open++;
    this.#push(timer);
    return () => {
      if (close()) this.#compact();
    };
  }

  /** Removes and returns the first timer if it is due at `untilMs` or before. */
  takeNext(untilMs: number): DueTimer | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || first.atMs > untilMs) return undefined;
      this.#pop();
      if (first.isOpen) return first;
    }
  }

  /** Removes and returns all timers with the earliest due time, if that is not after `untilMs`. */
  takeNextMoment(untilMs: number): readonly DueTimer[] {
    const first = this.takeNext(untilMs);
    if (first === undefined) return [];
    const due = [first];
    for (let next = this.takeNext(first.atMs); next !== undefined; next = this.takeNext(first.atMs))
      due.push(next);
    return due;
  }

  #compact(): void {
    if (this.#heap.length < LEAST_COMPACTED || this.#heap.length < MAX_CANCELLED_SHARE * this.#open) return;
    // A sorted array is a heap.
    this.#heap = this.#heap.filter(({ isOpen }) => isOpen).sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let index = heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(timer, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const left = heap[child];
      if (left === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, left)) child++;
      const least = heap[child];
      if (least === undefined || !isBefore(least, last)) break;
      heap[index] = least;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
