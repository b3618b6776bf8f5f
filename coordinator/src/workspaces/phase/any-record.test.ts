import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { checkAnyRecord } from "../../../test/support/workspaces/any-record.ts";

const RECORDS = 5_000;

test("never returns to an earlier phase, drops unsaved content or trusts an archive that is not stored, for any record", () => {
  for (let seed = 0; seed < RECORDS; seed++) {
    try {
      checkAnyRecord(randomOf(seed));
    } catch (error) {
      throw new Error(`record ${seed}: ${String(error)}`, { cause: error });
    }
  }
});
