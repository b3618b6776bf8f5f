import type { VirtualClock } from "@forage/common/virtual-clock";

/** Chances in [0, 1] for each call or event. */
export interface SimFaults {
  callFails: number;
  /** The caller gets a time-out. The call takes effect or not, at once or a little later. */
  callTimesOut: number;
  eventLost: number;
  streamBreaks: number;
  startFails: number;
  /** A program that is to end well doesn't. */
  programFails: number;
  hookFails: number;
  /** The registry can't be reached from this host. */
  pullFails?: number;
  /** A probe fails whatever the program is like. */
  probeFails?: number;
  /** A mount hangs. It is tried again, and ends when it doesn't hang any more. */
  mountHangs?: number;
}

export const NO_FAULTS: SimFaults = {
  callFails: 0,
  callTimesOut: 0,
  eventLost: 0,
  streamBreaks: 0,
  startFails: 0,
  programFails: 0,
  hookFails: 0,
};

/** One agent's way to the host. Once it is cut, its calls neither begin nor end, but what had begun goes on. */
export interface SimLine {
  cut: boolean;
}

export interface SimCall<Result> {
  readonly effect: () => Result | Promise<Result>;
  readonly fail: (code: "UNAVAILABLE" | "TIMEOUT") => Error;
  /** Whether it may take effect after its caller has timed out. */
  readonly mayBeLate?: boolean;
}

const TIME_LIMIT_MS = 20_000;
// Containerd may go on with what a killed client had asked it for; a network plugin that was killed is over.
const LATE_EFFECT_MAX_MS = 300;

/** Runs calls on the simulated host. Each takes some time, and the configured faults make some of them fail. */
export class SimCalls {
  readonly clock: VirtualClock;
  readonly random: () => number;
  faults: SimFaults = { ...NO_FAULTS };

  constructor(clock: VirtualClock, random: () => number) {
    this.clock = clock;
    this.random = random;
  }

  chance(probability: number): boolean {
    return probability > 0 && this.random() < probability;
  }

  async make<Result>(line: SimLine, { effect, fail, mayBeLate = false }: SimCall<Result>): Promise<Result> {
    if (line.cut) return never();
    await this.clock.sleep(5 + this.random() * 200);
    if (this.chance(this.faults.callFails)) {
      if (line.cut) return never();
      throw fail("UNAVAILABLE");
    }
    if (this.chance(this.faults.callTimesOut)) {
      const effectful = this.random();
      const doIt = async () => void (await effect());
      if (effectful < 0.4) await doIt().catch(() => undefined);
      await this.clock.sleep(TIME_LIMIT_MS);
      if (effectful > 0.8 && mayBeLate && !line.cut) {
        this.clock.schedule(this.random() * LATE_EFFECT_MAX_MS, () => void doIt().catch(() => undefined));
      }
      if (line.cut) return never();
      throw fail("TIMEOUT");
    }
    // The effect is the host's; only the answer is lost when the agent is gone.
    let result: Result;
    try {
      result = await effect();
    } catch (error) {
      if (line.cut) return never();
      throw error;
    }
    await this.clock.sleep(this.random() * 20);
    return line.cut ? never() : result;
  }
}

export function never<Result>(): Promise<Result> {
  return new Promise(() => undefined);
}
