import assert from "node:assert/strict";
import { test } from "node:test";
import { shortQuantity } from "./quantity.ts";

test("shortens binary quantities, and leaves others unchanged", () => {
  const cases: Record<string, string> = {
    "23449891Ki": "22.4Gi",
    "1048576Ki": "1Gi",
    "512Mi": "512Mi",
    "1536Mi": "1.5Gi",
    "16777216": "16Mi",
    "110": "110",
    "3800m": "3800m",
    "1.5Gi": "1.5Gi",
    "": "",
    "0": "0",
  };
  for (const [text, short] of Object.entries(cases)) assert.equal(shortQuantity(text), short, text);
});
