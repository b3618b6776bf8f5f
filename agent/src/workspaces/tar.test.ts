import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { packDirectory } from "./tar.ts";

test("packing starts no program if it is aborted before", async () => {
  const reason = new Error("the order has changed");
  await assert.rejects(packDirectory(tmpdir(), AbortSignal.abort(reason)).next(), reason);
});
