import { StateSaver as Real } from "../../agent/src/state-saver.ts";

/** Writes no state again that could not be written. */
export class StateSaver extends Real {
  constructor(options: ConstructorParameters<typeof Real>[0]) {
    super({ ...options, clock: { ...options.clock, schedule: () => () => {} } });
  }
}
