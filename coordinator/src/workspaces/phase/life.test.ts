import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { WorkspaceType } from "@forage/proto/core";
import { SimulatedLife } from "../../../test/support/workspaces/simulated-life.ts";

/**
 * The number of seeds. `FORAGE_WORKSPACE_SEEDS` overrides it. The default needs a few seconds of
 * CPU.
 */
const SEEDS = Number(process.env.FORAGE_WORKSPACE_SEEDS ?? 300);
const STEPS = 150;
const TYPES = [
  WorkspaceType.REGULAR,
  WorkspaceType.REGULAR,
  WorkspaceType.PREBUILD,
  WorkspaceType.IMAGEBUILD,
];

test("moves through the phases in order, stops once, and deletes content only after it is saved, despite faults and crashes", () => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = randomOf(seed);
    const life = new SimulatedLife(random, random.pick(TYPES));
    try {
      for (let step = 0; step < STEPS; step++) life.step();
      life.finish();
      if (!life.isStopped) throw new Error(`it does not stop: ${life.record.message}`);
    } catch (error) {
      throw new Error(`seed ${seed}: ${String(error)}\n${life.trace}`, { cause: error });
    }
  }
});
