import type { VirtualClock } from "@forage/common/virtual-clock";

/** The probability in [0, 1] of a fault for each call or event. */
export interface SimFaults {
  callFails: number;
  /** The caller gets a time-out. The call may take effect, at once or a little later, or never. */
  callTimesOut: number;
  eventLost: number;
  streamBreaks: number;
  startFails: number;
  /** A program that should succeed fails. */
  programFails: number;
  hookFails: number;
  /** The registry can't be reached from this host. */
  pullFails?: number;
  /** A probe fails whatever the program is like. */
  probeFails?: number;
  /** A mount hangs. It is retried, and ends when it no longer hangs. */
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

/**
 * The connection of one agent to the host. Once it is cut, its calls neither begin nor end, but work that had begun
 * continues.
 */
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
// Containerd may continue the calls of a killed client. A killed network plugin does nothing more.
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
    // The effect remains on the host. Only the answer is lost if the agent is dead.
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
