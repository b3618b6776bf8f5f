import {
  type FaultSubject,
  ObjectFaults as RealObjectFaults,
} from "../../coordinator/src/faults/object-faults.ts";

export * from "../../coordinator/src/faults/object-faults.ts";

/** Lets the error of one object end the handling of all. */
export class ObjectFaults extends RealObjectFaults {
  override attempt<T>(_subject: FaultSubject, step: () => T): T {
    return step();
  }
}
