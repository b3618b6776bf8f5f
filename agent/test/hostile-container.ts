import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";

// Exchanges a directory of a volume for a link that leads out of it, and back, as fast as it can: `hostile-container.ts VOLUME NAME OUTSIDE`.
const [volume = "", name = "", outside = ""] = process.argv.slice(2);
const [shown, link] = [join(volume, name), join(volume, `.${name}-link`)];
mkdirSync(shown, { recursive: true });
symlinkSync(outside, link);
process.send?.("ready");

function spin(round: number): void {
  // A program that creates directories meanwhile may fill both the shown and the hidden place, and neither could be renamed to the other any more: each round hides the directory at a place of its own.
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
