import { StateSaver as Real } from "../../agent/src/state-saver.ts";

/** Treats a removal as durable although the disk has rejected it. */
export class StateSaver extends Real {
  override async saveRemoved(...removal: Parameters<Real["saveRemoved"]>): Promise<void> {
    await this.save(...removal);
  }
}
