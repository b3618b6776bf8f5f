import assert from "node:assert/strict";
import { test } from "node:test";
import { drawRecording } from "./draw-recording.ts";

const options = { title: "A <test>", columns: 10, rows: 2, restMs: 1_000 };

test("shows each line at its time, typed lines character by character", () => {
  const svg = drawRecording(
    [
      { atMs: 0, text: "$ ls", typedMs: 400 },
      { atMs: 1_000, text: "a & b" },
    ],
    options,
  );
  assert.match(svg, /aria-label="A &lt;test&gt;"/);
  assert.match(svg, /@keyframes l1\{0%\{visibility:hidden\}50%\{visibility:visible\}\}/);
  assert.match(svg, /@keyframes c0\{0%\{width:0;animation-timing-function:steps\(4\)\}20%\{/);
  assert.match(svg, /animation-name:l1" y="36">a &amp; b</);
  assert.match(svg, /animation-duration:2000ms/);
  assert.doesNotMatch(svg, /<script|href=|url\(http/);
});

test("wraps long lines, and scrolls when the screen is full", () => {
  const svg = drawRecording(
    [
      { atMs: 500, text: "0123456789abc" },
      { atMs: 1_000, text: "end" },
    ],
    options,
  );
  assert.match(svg, />0123456789</);
  assert.match(svg, />abc</);
  assert.match(svg, /@keyframes s\{0%\{transform:translateY\(0px\)\}50%\{transform:translateY\(-18px\)\}\}/);
  assert.match(svg, /\.s\{transform:translateY\(-18px\)\}/);
});
