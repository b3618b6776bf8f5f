import { ImageStore as Real } from "../../agent/src/pods/image-store.ts";
import { onWallClock } from "./on-wall-clock.ts";

export * from "../../agent/src/pods/image-store.ts";

/** Uses the wall clock to decide when to pull an image again. */
export class ImageStore extends Real {
  constructor(options: ConstructorParameters<typeof Real>[0]) {
    super({ ...options, clock: onWallClock(options.clock) });
  }
}
