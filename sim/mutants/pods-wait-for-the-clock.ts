import { PodLoop as Real } from "../../agent/src/pods/pod-loop.ts";
import { onWallClock } from "./on-wall-clock.ts";

type Options = ConstructorParameters<typeof Real>;

/** Uses the wall clock to decide when to retry a step. */
export class PodLoop extends Real {
  constructor(dependencies: Options[0], options: Options[1]) {
    super({ ...dependencies, clock: onWallClock(dependencies.clock) }, options);
  }
}
