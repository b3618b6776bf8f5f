import { HoldUpDetector as RealHoldUpDetector } from "../../../src/link/hold-up.ts";

export * from "../../../src/link/hold-up.ts";

/** Never notices that the process did not run. */
export class HoldUpDetector extends RealHoldUpDetector {
  override check(): void {}
}
