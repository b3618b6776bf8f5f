import { systemClock } from "../src/clock.ts";
import { VirtualClock } from "../src/virtual-clock.ts";
import { testClock } from "./clock-contract.ts";

/** The longest delay of one timer of Node. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

testClock("the machine's clock", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  // A tick treats timers that are created during it as if they began at its end.
  const advance = (ms: number): void => {
    for (let restMs = ms; restMs > 0; restMs -= MAX_TIMEOUT_MS)
      t.mock.timers.tick(Math.min(restMs, MAX_TIMEOUT_MS));
  };
  return { clock: systemClock, advance };
});

for (const wholeMs of [false, true])
  testClock(`virtual clock${wholeMs ? " in whole milliseconds" : ""}`, () => {
    const clock = new VirtualClock({ wholeMs });
    return { clock, advance: (ms) => clock.advance(ms) };
  });
