import { TaintAges as Real } from "../../coordinator/src/control/eviction/taint-ages.ts";

/** Counts the ages of taints by the wall clock. */
export class TaintAges extends Real {
  constructor({ nowMs }: ConstructorParameters<typeof Real>[0]) {
    super({ nowMs, monotonicMs: nowMs });
  }
}
