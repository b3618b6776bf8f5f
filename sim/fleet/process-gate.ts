import type { VirtualClock } from "@forage/common/virtual-clock";

/**
 * Pauses a simulated process, as SIGSTOP or a paused machine does. Timers and input that are due meanwhile wait.
 * Afterwards timers run first and input is read only then, as in Node's event loop.
 */
export class ProcessGate {
  readonly #time: VirtualClock;
  readonly #timers: (() => void)[] = [];
  readonly #input: (() => void)[] = [];
  #heldSinceMs: number | undefined;
  #suspended = false;
  /** The time for which the monotonic clock was stopped. */
  #stoppedMs = 0;
  /** The time by which the wall clock was set forward. */
  wallJumpMs = 0;

  constructor(time: VirtualClock) {
    this.#time = time;
  }

  get held(): boolean {
    return this.#heldSinceMs !== undefined;
  }

  get stoppedMs(): number {
    return this.#stoppedMs;
  }

  /** Pauses the process. If `suspended`, its machine is paused with it, and the monotonic clock stops. */
  hold(suspended: boolean): void {
    this.#heldSinceMs = this.#time.nowMs();
    this.#suspended = suspended;
  }

  release(): void {
    if (this.#heldSinceMs === undefined) return;
    if (this.#suspended) this.#stoppedMs += this.#time.nowMs() - this.#heldSinceMs;
    this.#heldSinceMs = undefined;
    for (const run of this.#timers.splice(0)) this.#time.schedule(0, () => this.timer(run));
    for (const run of this.#input.splice(0)) this.#time.schedule(1, () => this.input(run));
  }

  timer(run: () => void): void {
    if (this.held) this.#timers.push(run);
    else run();
  }

  input(run: () => void): void {
    if (this.held) this.#input.push(run);
    else run();
  }
}
