import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { describe, test } from "node:test";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { plain } from "../output/paint.ts";
import type { OutputStream } from "../world.ts";
import type { ResourceState } from "./outcome.ts";
import { showProgress } from "./progress.ts";

class FakeStream extends Writable {
  written = "";
  constructor(terminal: { isTTY?: boolean; columns?: number; rows?: number }) {
    super();
    Object.assign(this, terminal);
  }
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written += chunk.toString();
    done();
  }
}

function aState(name: string, status: RolloutStatus, message = ""): ResourceState {
  return { kind: "service", name, status, message };
}

/**
 * Returns the content of a terminal's screen after this output. Supports only the sequences that
 * Redraw uses.
 */
function screen(written: string): string[] {
  const lines: string[] = [""];
  let row = 0;
  const readable = written.replaceAll("\u001b", "␛");
  for (const [part = "", up, clearBelow] of readable.matchAll(/␛\[(\d+)A|␛\[(0)J|␛\[2K|\r|\n|[^␛\r\n]+/g)) {
    if (up !== undefined) row -= Number(up);
    else if (clearBelow !== undefined) lines.splice(row);
    else if (part === "\n") row++;
    else if (part === "␛[2K") lines[row] = "";
    else if (part !== "\r") lines[row] = (lines[row] ?? "") + part;
    assert.ok(row >= 0, "the cursor went above the picture");
  }
  return lines;
}

describe("on a terminal", () => {
  const start = (size: { columns?: number; rows?: number } = {}) => {
    const stream = new FakeStream({ isTTY: true, columns: 60, rows: 24, ...size });
    return { stream, progress: showProgress(stream as OutputStream, plain) };
  };

  test("redraws one line for each resource", () => {
    const { stream, progress } = start();
    progress.state("r", aState("a", RolloutStatus.PENDING));
    progress.state("r", aState("longer", RolloutStatus.IN_PROGRESS, "1/2 ready"));
    progress.note("lost; trying again");
    assert.deepEqual(screen(stream.written), [
      "… service/a       pending      ",
      "… service/longer  in progress  1/2 ready",
      "lost; trying again",
    ]);
    progress.state("r", aState("a", RolloutStatus.SUCCEEDED, "ok"));
    progress.state("r", aState("longer", RolloutStatus.FAILED, "no\nway"));
    assert.deepEqual(screen(stream.written), [
      "✓ service/a       done         ok",
      "✗ service/longer  failed       no\\nway",
    ]);
    progress.close([aState("longer", RolloutStatus.FAILED, "no\nway")]);
    assert.deepEqual(screen(stream.written).slice(2), ["service/longer: failed: no", "    way"]);
  });

  test("never wraps lines", () => {
    const { stream, progress } = start({ columns: 30 });
    progress.state("r", aState("a", RolloutStatus.IN_PROGRESS, "日本".repeat(30)));
    const [line = ""] = screen(stream.written);
    assert.equal(line, "… service/a  in progress  日…");
  });

  test("assumes the usual size for a terminal that does not know its size", () => {
    const { stream, progress } = start({ columns: 0, rows: 0 });
    for (let i = 0; i < 6; i++) progress.state("r", aState(`s${i}`, RolloutStatus.PENDING, "no node fits"));
    assert.equal(screen(stream.written)[5], "… service/s5  pending      no node fits");
  });

  test("shows resources in progress if there are more than rows", () => {
    const { stream, progress } = start({ rows: 6 });
    for (let i = 0; i < 20; i++) progress.state("r", aState(`s${i}`, RolloutStatus.PENDING));
    for (let i = 0; i < 18; i++) progress.state("r", aState(`s${i}`, RolloutStatus.SUCCEEDED));
    assert.deepEqual(screen(stream.written), [
      "… service/s18  pending      ",
      "… service/s19  pending      ",
      "… and 18 more",
    ]);
  });
});

describe("elsewhere", () => {
  test("prints one line for each change, without repetition and with whole messages", () => {
    const stream = new FakeStream({});
    const progress = showProgress(stream as OutputStream, plain);
    progress.state("r", aState("a", RolloutStatus.PENDING));
    progress.state("r", aState("b", RolloutStatus.PENDING));
    progress.state("r", aState("a", RolloutStatus.PENDING));
    progress.note("lost");
    progress.note("lost");
    progress.state(
      "r",
      aState("a", RolloutStatus.FAILED, "exited with code 3; last lines: one\ntwo\u001b[2J\n"),
    );
    progress.close([]);
    assert.equal(
      stream.written,
      "service/a: pending\nservice/b: pending\nlost\nservice/a: failed: exited with code 3; last lines: one\n    two\\x1b[2J\n",
    );
  });
});
