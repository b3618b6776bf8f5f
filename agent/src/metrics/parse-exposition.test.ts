import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseExposition, type ScrapedValue } from "./parse-exposition.ts";

const gauge = (sum: number): ScrapedValue => ({ type: "gauge", sum });
const counter = (sum: number): ScrapedValue => ({ type: "counter", sum });

const cases: readonly (readonly [
  what: string,
  text: string,
  name: string,
  ScrapedValue | "unusable" | undefined,
])[] = [
  ["a plain number", "queue 7", "queue", gauge(7)],
  ["a number with a time", "queue 7.5 1700000000000", "queue", gauge(7.5)],
  ["an exponent", "queue 1.5e3", "queue", gauge(1500)],
  ["series are added up", 'queue{a="1"} 2\nqueue{a="2"} 3\n', "queue", gauge(5)],
  ["a brace and a quote in a label", 'queue{a="}\\" 9",b="x"} 4', "queue", gauge(4)],
  ["labels and blanks", 'queue{ a="1", } 4', "queue", gauge(4)],
  ["a name with colons", "job:queue:sum 4", "job:queue:sum", gauge(4)],
  ["a name that has more", "queue_depth 9\nqueue 1", "queue", gauge(1)],
  ["a line with a carriage return", "queue 4\r\n", "queue", gauge(4)],
  ["no number", "queue NaN", "queue", undefined],
  ["one series without a number", 'queue{a="1"} NaN\nqueue{a="2"} 3', "queue", gauge(3)],
  ["without end", "queue +Inf", "queue", undefined],
  ["nothing behind it", "queue", "queue", undefined],
  ["labels without end", 'queue{a="1', "queue", undefined],
  ["something else", "other 1", "queue", undefined],
  ["nothing", "", "queue", undefined],
  ["a declared counter", "# TYPE rps counter\nrps 7", "rps", counter(7)],
  ["a declared gauge that is called total", "# TYPE a_total gauge\na_total 7", "a_total", gauge(7)],
  ["an undeclared total", "a_total 7", "a_total", counter(7)],
  ["a counter of OpenMetrics", '# TYPE a counter\na_total 7 # {trace="x"} 1\n# EOF', "a_total", counter(7)],
  ["the count of a histogram", '# TYPE a histogram\na_bucket{le="1"} 2\na_count 3', "a_count", counter(3)],
  ["the buckets of a histogram", '# TYPE a histogram\na_bucket{le="1"} 2', "a_bucket", "unusable"],
  ["a summary", '# TYPE a summary\na{quantile="0.5"} 2', "a", "unusable"],
  ["a name that the format doesn't know", "packets_per_second 7", "packets-per-second", gauge(7)],
  ["a resource's name", "vendor_example_gpu 0.5", "vendor.example/gpu", gauge(0.5)],
];

describe("parses the metrics of pods", () => {
  for (const [what, text, name, expected] of cases) {
    test(what, () => {
      const value = parseExposition(text, [name]).get(name);
      if (expected === "unusable") assert.equal(value?.type, "unusable");
      else assert.deepEqual(value, expected);
    });
  }
});

test("keeps only the requested metrics", () => {
  const noise = Array.from({ length: 20_000 }, (_, index) => `noise_${index}{a="${index}"} ${index}`);
  const text = [...noise, "# HELP a words", "# TYPE a gauge", "a 1", "b 2", "b 3"].join("\n");
  assert.deepEqual(
    [...parseExposition(text, ["a", "b", "c"])],
    [
      ["a", gauge(1)],
      ["b", gauge(5)],
    ],
  );
});

test("parses any text in linear time", () => {
  const parts = ["queue{", '"', "\\", "}", " 7", "\n", "# TYPE queue ", "counter", "é", "queue"];
  let seed = 7;
  const next = (limit: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % limit;
  };
  for (let round = 0; round < 300; round++) {
    const text = Array.from({ length: 200 }, () => parts[next(parts.length)]).join("");
    const value = parseExposition(text, ["queue"]).get("queue");
    assert.ok(value === undefined || value.type === "unusable" || Number.isFinite(value.sum));
  }
});
