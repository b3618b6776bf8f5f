import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readmeTable, TABLE_HEAD } from "./table.ts";

const root = join(import.meta.dirname, "..", "..");
const source = readFileSync(join(root, "bench/apply/main.ts"), "utf8");
const figures = Object.fromEntries(
  [...source.matchAll(/result\["([^"]+)"\] =/g)].map(([, name = ""], index) => [name, index + 0.25]),
);

/** Returns a row's cells without the measured figures. */
const fixedCells = (row: string): readonly string[] => {
  const cells = row.split("|").map((cell) => cell.trim());
  return [cells[1] ?? "", (cells[2] ?? "").replace(/^[\d. /]+/, ""), cells[4] ?? ""];
};

test("README's table has the rows, units and reference figures that the benchmark prints", () => {
  const lines = readFileSync(join(root, "README.md"), "utf8").split("\n");
  const begin = lines.indexOf(TABLE_HEAD[0] ?? "");
  const end = lines.indexOf("", begin);
  assert.deepEqual(lines.slice(begin, end).map(fixedCells), readmeTable(figures).map(fixedCells));
});

test("prints figures with their units, and the floor next to them", () => {
  const table = readmeTable({
    ...figures,
    "apply → 20 ready (s)": 2.2,
    "floor: 20 × nerdctl run (s)": 0.954,
  });
  assert.ok(table.includes("| apply → 20 replicas ready | 2.2 s | 0.95 s | 3.7–3.9 s |"), table.join("\n"));
});

test("a figure that was not measured is an error", () => {
  assert.throws(() => readmeTable({}), /did not measure "apply → 1 ready \(s\)"/);
});
