import type { PullState } from "../runtime.ts";

interface Layer {
  readonly done: boolean;
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** Reads the progress that `nerdctl pull` prints ten times a second, to distinguish a slow pull from one that hangs. */
export class PullProgress {
  readonly #lines = new Map<string, string>();
  readonly #layers = new Map<string, Layer>();
  #rest = "";

  /** Parses output. Returns true if a bar, a byte count or a step has changed. */
  push(text: string): boolean {
    const lines = `${this.#rest}${text}`.split("\n");
    this.#rest = (lines.pop() ?? "").slice(-LINE_MAX_LENGTH);
    return lines.map((line) => this.#parse(line)).includes(true);
  }

  /** Whether layers are being downloaded. Afterwards they are unpacked, which prints no progress. */
  get downloading(): boolean {
    return (
      this.#lines.size === 0 ||
      [...this.#lines.values()].some((it) => /resolving|waiting|downloading/.test(it))
    );
  }

  get state(): PullState {
    const layers = [...this.#layers.values()];
    return {
      layersDone: layers.filter((it) => it.done).length,
      layers: layers.length,
      bytesDone: layers.reduce((sum, it) => sum + it.bytesDone, 0),
      bytesTotal: layers.reduce((sum, it) => sum + it.bytesTotal, 0),
    };
  }

  #parse(line: string): boolean {
    const plain = line.replace(COLOURS, "").replace(CLOCKWORK, "").trim();
    const key = plain.split(" ", 1)[0] ?? "";
    if (plain === "" || this.#lines.get(key) === plain) return false;
    if (this.#lines.size >= LINES_MAX && !this.#lines.has(key)) return false;
    this.#lines.set(key, plain);
    if (key.startsWith("layer-")) this.#layers.set(key, readLayer(plain, this.#layers.get(key)));
    return true;
  }
}

/** Parses a layer's line. A finished layer prints no numbers, so it keeps the size of its download. */
function readLayer(line: string, before: Layer | undefined): Layer {
  const sizes = SIZES.exec(line);
  if (sizes !== null) return { done: false, bytesDone: bytesOf(sizes[1]), bytesTotal: bytesOf(sizes[2]) };
  const done = /^\S+\s+(done|exists)\b/.test(line);
  const { bytesTotal = 0, bytesDone = 0 } = before ?? {};
  return { done, bytesDone: done ? bytesTotal : bytesDone, bytesTotal };
}

function bytesOf(text = ""): number {
  const [, number, unit = ""] = /^([0-9.]+) *([KMGT]?)/.exec(text.trim()) ?? [];
  return Math.round(Number(number ?? 0) * 1024 ** " KMGT".indexOf(unit || " "));
}

const LINE_MAX_LENGTH = 1_000;
// An image has at most 127 layers.
const LINES_MAX = 500;
const ESCAPE = String.fromCharCode(27);
const COLOURS = new RegExp(`${ESCAPE}\\[[0-9;]*[A-Za-z]`, "g");
// Numbers that change even without progress: the elapsed time, and the mean rate that falls with it.
const CLOCKWORK = /elapsed: *[0-9.]+ *s|\([^)]*\/s\)/g;
// Matches `1.0 MiB/3.0 MiB`; nerdctl truncates the first number after eight characters.
const SIZES = /\bdownloading\b.*\|\s*([0-9.]+ *[KMGT]?i?B?)\/([0-9.]+ *[KMGT]?i?B?)\s*$/;
