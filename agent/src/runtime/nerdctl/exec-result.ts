import { RuntimeError } from "../runtime.ts";
import { classifyError } from "./classify-error.ts";
import { findFatal } from "./fatal-line.ts";

/** The result of an exec. */
export interface ExecOutcome {
  readonly exitCode: number;
  /** The reason why the command could not be started, for its user. */
  readonly complaint?: string;
}

/**
 * Reads the command's exit code from nerdctl's last message, because nerdctl itself always exits with 1. Throws
 * NOT_FOUND if there is no such running container.
 */
export function execOutcomeOf(nerdctlExitCode: number | undefined, lastWords: string): ExecOutcome {
  if (nerdctlExitCode === 0) return { exitCode: 0 };
  const said = nerdctlExitCode === undefined ? undefined : findFatal(lastWords)?.message;
  if (said === undefined)
    throw new RuntimeError("UNAVAILABLE", "nerdctl exec was cut off", { retryable: true });
  const code = /^exec failed with exit code (\d+)$/.exec(said)?.[1];
  if (code !== undefined) return { exitCode: Number(code) };
  if (
    /OCI runtime exec failed|unable to start container process/.test(said) &&
    !/container (is )?not running/.test(said)
  ) {
    const complaint = `${classifyError("run", lastWords).message}\n`;
    return { exitCode: /not found|no such file/.test(said) ? NOT_FOUND : NOT_EXECUTABLE, complaint };
  }
  if (
    /no such container|no running task|in a (stopped|deleted|created) state|not running|ttrpc: closed|task .*not found/.test(
      said,
    )
  ) {
    throw new RuntimeError("NOT_FOUND", "the container is not running", { retryable: false });
  }
  throw classifyError("other", lastWords);
}

// The exit code of shells for a file that is not executable.
const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

/**
 * Delays the end of a stream that may be nerdctl's last message, and passes on everything else at once. Commands may
 * write lines that look the same, so only the last line counts, and only if nerdctl failed.
 */
export class FinalMessageFilter {
  #held: Buffer = Buffer.alloc(0);

  /** Returns the part that certainly belongs to the command. */
  push(chunk: Buffer): Buffer {
    const all = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const from = heldFrom(all.toString("latin1"));
    this.#held = all.subarray(from);
    return all.subarray(0, from);
  }

  /** Ends the stream. Returns nerdctl's own message and the rest of the command's output. */
  end(nerdctlExitCode: number | undefined): { readonly words: string; readonly rest: Buffer } {
    const fatal = nerdctlExitCode === 0 ? undefined : findFatal(this.#held.toString("latin1"));
    const start = fatal?.start ?? this.#held.length;
    return { words: this.#held.toString("utf8", start), rest: this.#held.subarray(0, start) };
  }
}

const OPENING = 'time="';
const TIME_MAX_LENGTH = 40;
const MIDDLE = '" level=fatal msg=';
// nerdctl's messages are far shorter; a longer one belongs to the command.
const HELD_MAX_LENGTH = 16 * 1024;

/** Returns the position at which nerdctl's last message may begin, or the length of `text` if it contains none. */
function heldFrom(text: string): number {
  const opening = text.lastIndexOf(OPENING);
  if (opening >= 0 && text.length - opening <= HELD_MAX_LENGTH && mayBeFatal(text.slice(opening)))
    return opening;
  for (let length = Math.min(OPENING.length - 1, text.length); length > 0; length -= 1) {
    if (OPENING.startsWith(text.slice(-length))) return text.length - length;
  }
  return text.length;
}

function mayBeFatal(text: string): boolean {
  const lineBreak = text.indexOf("\n");
  if (lineBreak >= 0 && lineBreak < text.length - 1) return false;
  const closing = text.indexOf('"', OPENING.length);
  if (closing < 0) return text.length <= OPENING.length + TIME_MAX_LENGTH;
  const after = text.slice(closing, closing + MIDDLE.length);
  return MIDDLE.startsWith(after);
}
