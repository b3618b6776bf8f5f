import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";

// Exchanges a directory of a volume for a link that leads out of it, and back, as fast as it can: `hostile-container.ts VOLUME NAME OUTSIDE`.
const [volume = "", name = "", outside = ""] = process.argv.slice(2);
const [shown, hidden, link] = [
  join(volume, name),
  join(volume, `.${name}-hidden`),
  join(volume, `.${name}-link`),
];
mkdirSync(shown, { recursive: true });
symlinkSync(outside, link);
process.send?.("ready");

function spin(): void {
  for (let times = 0; times < 200; times += 1) {
    // A program that creates directories meanwhile may prevent a rename.
    tryTo(() => renameSync(shown, hidden));
    tryTo(() => renameSync(link, shown));
    tryTo(() => renameSync(shown, link));
    tryTo(() => renameSync(hidden, shown));
  }
  setImmediate(spin);
}

function tryTo(act: () => void): void {
  try {
    act();
  } catch {}
}

process.on("disconnect", () => process.exit());
spin();
