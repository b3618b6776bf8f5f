import { testJournalFiles } from "../agent/test/journal-files-contract.ts";
import { testClock } from "../common/test/clock-contract.ts";
import { clockOf } from "../coordinator/test/sim/process-clock.ts";
import { simTime } from "../coordinator/test/sim/sim-time.ts";
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
