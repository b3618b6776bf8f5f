import { StateSaver as Real } from "../../agent/src/state-saver.ts";

/** Takes a removal for durable that the disk has not taken. */
export class StateSaver extends Real {
  override async saveRemoved(...removal: Parameters<Real["saveRemoved"]>): Promise<void> {
    await this.save(...removal);
  }
}
