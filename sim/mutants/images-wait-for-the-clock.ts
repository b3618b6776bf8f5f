import { ImageStore as Real } from "../../agent/src/pods/image-store.ts";
import { onWallClock } from "./on-wall-clock.ts";

export * from "../../agent/src/pods/image-store.ts";

/** Tries to pull an image again by the wall clock. */
export class ImageStore extends Real {
  constructor(options: ConstructorParameters<typeof Real>[0]) {
    super({ ...options, clock: onWallClock(options.clock) });
  }
}
