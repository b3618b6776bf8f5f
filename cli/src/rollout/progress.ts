import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import type { Paint, Style } from "../output/paint.ts";
import { plainText } from "../output/plain-text.ts";
import type { OutputStream } from "../world.ts";
import { isFinal, type ResourceState, statusWord } from "./outcome.ts";
import { Redraw } from "./redraw.ts";

/** Shows the progress of rollouts. */
export interface Progress {
  /** Shows the state of a resource. Replaces its former state. */
  state(rolloutId: string, state: ResourceState): void;
  note(text: string): void;
  /** Keeps the last lines on the screen, and prints failures in full that were shortened. */
  close(failed: readonly ResourceState[]): void;
}

/**
 * Shows the progress: one redrawn line for each resource on a terminal, otherwise one line for each
 * change.
 */
export function showProgress(stream: OutputStream, paint: Paint): Progress {
  return stream.isTTY === true ? new RedrawnProgress(stream, paint) : new WrittenProgress(stream, paint);
}

/** Returns the whole message of a resource, with the last lines of its log below. */
function describeState({ kind, name, status, message }: ResourceState, paint: Paint): string {
  const [first = "", ...rest] = plainText(message, { lines: true }).trim().split("\n");
  const head = `${kind}/${name}: ${paint(styleOf(status), statusWord(status))}${first === "" ? "" : `: ${first}`}`;
  return [head, ...rest.map((line) => `    ${line}`)].join("\n");
}

class WrittenProgress implements Progress {
  readonly #stream: OutputStream;
  readonly #paint: Paint;
  readonly #last = new Map<string, string>();

  constructor(stream: OutputStream, paint: Paint) {
    this.#stream = stream;
    this.#paint = paint;
  }

  state(rolloutId: string, state: ResourceState): void {
    const key = `${rolloutId} ${state.kind}/${state.name}`;
    const text = describeState(state, this.#paint);
    // After a reconnection, the stream sends every status again.
    if (this.#last.get(key) === text) return;
    this.#last.set(key, text);
    this.#stream.write(`${text}\n`);
  }

  note(text: string): void {
    if (this.#last.get("note") === text) return;
    this.#last.set("note", text);
    this.#stream.write(`${plainText(text)}\n`);
  }

  close(): void {
    // Each line was already printed in full.
  }
}

class RedrawnProgress implements Progress {
  readonly #stream: OutputStream;
  readonly #redraw: Redraw;
  readonly #paint: Paint;
  readonly #states = new Map<string, ResourceState>();
  #note = "";

  constructor(stream: OutputStream, paint: Paint) {
    this.#stream = stream;
    this.#redraw = new Redraw(stream);
    this.#paint = paint;
  }

  state(rolloutId: string, state: ResourceState): void {
    this.#states.set(`${rolloutId} ${state.kind}/${state.name}`, state);
    this.#note = "";
    this.#draw();
  }

  note(text: string): void {
    this.#note = text;
    this.#draw();
  }

  close(failed: readonly ResourceState[]): void {
    this.#redraw.close();
    for (const state of failed) this.#stream.write(`${describeState(state, this.#paint)}\n`);
  }

  #draw(): void {
    const states = [...this.#states.values()];
    const width = Math.max(0, ...states.map(({ kind, name }) => kind.length + name.length + 1));
    // If not all fit, resources that are still in progress are shown first.
    const fitting = this.#redraw.maxLines - 2;
    const shown =
      states.length <= fitting ? states : states.filter(({ status }) => !isFinal(status)).slice(0, fitting);
    const lines = shown.map((state) => this.#line(state, width));
    if (shown.length < states.length) lines.push(`… and ${states.length - shown.length} more`);
    if (this.#note !== "") lines.push(plainText(this.#note));
    this.#redraw.draw(lines, (line, index) => {
      const state = shown[index];
      return state === undefined ? this.#paint("faint", line) : this.#paintMark(line, state);
    });
  }

  #line({ kind, name, status, message }: ResourceState, width: number): string {
    const word = statusWord(status).padEnd("rolled back".length);
    return `${markOf(status)} ${`${kind}/${name}`.padEnd(width)}  ${word}  ${plainText(message)}`;
  }

  #paintMark(line: string, { status }: ResourceState): string {
    return `${this.#paint(styleOf(status), line.slice(0, 1))}${line.slice(1)}`;
  }
}

function markOf(status: RolloutStatus): string {
  if (status === RolloutStatus.SUCCEEDED) return "✓";
  return isFinal(status) ? "✗" : "…";
}

function styleOf(status: RolloutStatus): Style {
  if (status === RolloutStatus.SUCCEEDED) return "good";
  return isFinal(status) ? "bad" : "busy";
}
