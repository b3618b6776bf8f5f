import { StateSaver as Real } from "../../agent/src/state-saver.ts";

/** Never retries the write of a state that could not be written. */
export class StateSaver extends Real {
  constructor(options: ConstructorParameters<typeof Real>[0]) {
    super({ ...options, clock: { ...options.clock, schedule: () => () => {} } });
  }
}
