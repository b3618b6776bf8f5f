import { VirtualClock } from "@forage/common/virtual-clock";
import { testJournalFiles } from "../agent/test/journal-files-contract.ts";
import { testClock } from "../common/test/clock-contract.ts";
import { clockOf } from "../coordinator/test/sim/process-clock.ts";
import { simTime } from "../coordinator/test/sim/sim-time.ts";
import { SkipClock } from "../coordinator/test/support/skip-clock.ts";
import { filesOn, MemoryDisk } from "./memory-files.ts";
import { wholeDelays } from "./whole-delays.ts";

testJournalFiles("disk in memory", async (t) => {
  const life = new AbortController();
  t.after(() => life.abort());
  const time = simTime();
  const pass = (): void => {
    if (life.signal.aborted) return;
    time.next(Number.MAX_SAFE_INTEGER);
    setImmediate(pass);
  };
  setImmediate(pass);
  const files = filesOn(new MemoryDisk(), { clock: time, random: () => 0.5, life: life.signal });
  return { files, dir: "/journal/pods" };
});

testClock("a simulated process's clock", () => {
  const time = simTime();
  return { clock: clockOf(time, { aborted: false }, 3_000), advance: (ms) => time.advance(ms) };
});

testClock("a simulated agent's clock", () => {
  const time = simTime();
  const clock = wholeDelays(clockOf(time, { aborted: false }, 0));
  return { clock, advance: (ms) => time.advance(ms) };
});

testClock("a clock whose waiting times are skipped", () => {
  // The real time stands still.
  const clock = new SkipClock(new VirtualClock());
  return { clock, advance: (ms) => clock.skip(ms) };
});

testClock("a clock of which nothing is skipped", () => {
  const real = new VirtualClock();
  return { clock: new SkipClock(real), advance: (ms) => real.advance(ms) };
});
