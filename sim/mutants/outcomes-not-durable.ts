import { StateSaver as Real } from "../../agent/src/state-saver.ts";

/** Treats the outcome of a pod as durable although the disk has rejected it. */
export class StateSaver extends Real {
  override async save(...state: Parameters<Real["save"]>): Promise<boolean> {
    await super.save(...state);
    return true;
  }
}
