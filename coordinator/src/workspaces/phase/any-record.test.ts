import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { checkAnyRecord } from "../../../test/support/workspaces/any-record.ts";

const RECORDS = 5_000;

test("no decision about any record goes back, loses unsaved content, or trusts an archive that is not stored", () => {
  for (let seed = 0; seed < RECORDS; seed++) {
    try {
      checkAnyRecord(randomOf(seed));
    } catch (error) {
      throw new Error(`record ${seed}: ${String(error)}`, { cause: error });
    }
  }
});
