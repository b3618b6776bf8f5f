import { StallDetector as RealHoldUpDetector } from "../../coordinator/src/link/stall-detector.ts";

export * from "../../coordinator/src/link/stall-detector.ts";

/** Never notices that the process did not run. */
export class StallDetector extends RealHoldUpDetector {
  override check(): void {}
}
