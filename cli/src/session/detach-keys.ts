import { CliError } from "../errors.ts";

/** Cuts the keys that end a session out of input. */
export class DetachKeys {
  readonly #keys: Buffer;
  /** The bytes of a sequence that has begun. They are passed on if it doesn't go on. */
  #begun = 0;

  constructor(keys: Buffer) {
    this.#keys = keys;
  }

  /** Returns the input to pass on, and whether the keys have come. */
  take(input: Buffer): { readonly data: Buffer; readonly isDetached: boolean } {
    const passed: Buffer[] = [];
    for (const byte of input) {
      if (byte === this.#keys[this.#begun]) {
        this.#begun += 1;
        if (this.#begun === this.#keys.length) return { data: Buffer.concat(passed), isDetached: true };
        continue;
      }
      passed.push(this.#keys.subarray(0, this.#begun));
      this.#begun = byte === this.#keys[0] ? 1 : 0;
      if (this.#begun === 0) passed.push(Buffer.from([byte]));
    }
    return { data: Buffer.concat(passed), isDetached: false };
  }
}

const KEY = /^(?:ctrl-([a-z@[\\\]^_])|([\x21-\x7e]))$/;
const MAX_KEYS = 8;

/** Reads `ctrl-p,ctrl-q`: single characters, and those with the control key. */
export function parseDetachKeys(text: string): Buffer {
  const keys = text.split(",");
  const bytes = keys.map((key) => {
    const [, control, plain] = KEY.exec(key) ?? [];
    if (control !== undefined) return control.toUpperCase().charCodeAt(0) & 31;
    if (plain !== undefined) return plain.charCodeAt(0);
    throw new CliError(
      "USAGE",
      `--detach-keys: "${key}" is no key: use a character, or ctrl- and a letter or one of @ [ \\ ] ^ _`,
    );
  });
  if (bytes.length > MAX_KEYS) throw new CliError("USAGE", `--detach-keys: at most ${MAX_KEYS} keys`);
  return Buffer.from(bytes);
}
