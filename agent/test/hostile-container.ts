import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";

// `hostile-container.ts VOLUME NAME OUTSIDE` replaces a directory of a volume by a link that leads out of it, and back,
// as fast as it can.
const [volume = "", name = "", outside = ""] = process.argv.slice(2);
const [shown, link] = [join(volume, name), join(volume, `.${name}-link`)];
mkdirSync(shown, { recursive: true });
symlinkSync(outside, link);
process.send?.("ready");

function spin(round: number): void {
  // A program that creates directories meanwhile may occupy both the shown and the hidden path, which would block the
  // renames. Therefore each round uses a new hidden path.
  const hidden = join(volume, `.${name}-hidden-${round}`);
  for (let times = 0; times < 200; times += 1) {
    tryTo(() => renameSync(shown, hidden));
    tryTo(() => renameSync(link, shown));
    tryTo(() => renameSync(shown, link));
    tryTo(() => renameSync(hidden, shown));
  }
  setImmediate(spin, round + 1);
}

function tryTo(act: () => void): void {
  try {
    act();
  } catch {}
}

process.on("disconnect", () => process.exit());
spin(0);
