import { Fleet as RealFleet } from "../../../../scheduler/src/index.ts";

export * from "../../../../scheduler/src/index.ts";

/** Knows of no pods but those that it has placed itself. */
export class Fleet extends RealFleet {
  override bind(): void {}
}
