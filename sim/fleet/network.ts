import type { Random } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";

export type Direction = "up" | "down";

/** The connection between one node and the coordinator: its latency, and the directions in which it is cut. */
export class NodeLink {
  readonly #time: VirtualClock;
  readonly #random: Random;
  readonly #cut = { up: false, down: false };
  readonly #held = { up: new Set<() => void>(), down: new Set<() => void>() };
  /** The mean delay of a message. The actual delay is between half and twice of it. */
  latencyMs = 5;

  constructor(time: VirtualClock, random: Random) {
    this.#time = time;
    this.#random = random;
  }

  get open(): boolean {
    return !this.#cut.up && !this.#cut.down;
  }

  cut(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#cut[direction] = true;
  }

  /** Heals the connection. Delayed messages arrive. */
  heal(): void {
    for (const direction of ["up", "down"] as const) {
      this.#cut[direction] = false;
      const held = [...this.#held[direction]];
      this.#held[direction].clear();
      for (const go of held) go();
    }
  }

  delayMs(): number {
    return this.latencyMs * (0.5 + 1.5 * this.#random.next());
  }

  /** Calls `arrived` when a message that is sent now arrives. */
  carry(direction: Direction, arrived: () => void): void {
    this.#time.schedule(Math.round(this.delayMs()), () => this.#arrive(direction, arrived));
  }

  #arrive(direction: Direction, arrived: () => void): void {
    if (this.#cut[direction]) this.#held[direction].add(arrived);
    else arrived();
  }
}

/** Delivers messages of one stream in one direction, in order and without loss, until it is closed. */
export class Pipe<T> {
  readonly #way: NodeLink;
  readonly #direction: Direction;
  readonly #deliver: (item: T) => void;
  readonly #queue: T[] = [];
  #moving = false;
  #closed = false;

  constructor(way: NodeLink, direction: Direction, deliver: (item: T) => void) {
    this.#way = way;
    this.#direction = direction;
    this.#deliver = deliver;
  }

  send(item: T): void {
    if (this.#closed) return;
    this.#queue.push(item);
    this.#move();
  }

  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
  }

  #move(): void {
    if (this.#moving || this.#queue.length === 0) return;
    this.#moving = true;
    this.#way.carry(this.#direction, () => {
      this.#moving = false;
      if (this.#closed) return;
      // Messages that were sent meanwhile were directly behind this one.
      for (const item of this.#queue.splice(0)) this.#deliver(item);
    });
  }
}
