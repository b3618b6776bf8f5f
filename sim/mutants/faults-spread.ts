import {
  type FaultSubject,
  ObjectFaults as RealObjectFaults,
} from "../../coordinator/src/faults/object-faults.ts";

export * from "../../coordinator/src/faults/object-faults.ts";

/** Stops handling all objects after the error of one object. */
export class ObjectFaults extends RealObjectFaults {
  override attempt<T>(_subject: FaultSubject, step: () => T): T {
    return step();
  }
}
