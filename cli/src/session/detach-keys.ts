import { CliError } from "../errors.ts";

/** Detects the keys in the input that end a session, and removes them. */
export class DetachKeys {
  readonly #keys: Buffer;
  /**
   * The number of bytes of a started key sequence. They are passed on if the sequence does not
   * continue.
   */
  #begun = 0;

  constructor(keys: Buffer) {
    this.#keys = keys;
  }

  /** Returns the input to pass on, and whether the sequence is complete. */
  filter(input: Buffer): { readonly data: Buffer; readonly isDetached: boolean } {
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

/**
 * Parses a sequence such as `ctrl-p,ctrl-q`: single characters, with or without the control key.
 */
export function parseDetachKeys(text: string): Buffer {
  const keys = text.split(",");
  const bytes = keys.map((key) => {
    const [, control, plain] = KEY.exec(key) ?? [];
    if (control !== undefined) return control.toUpperCase().charCodeAt(0) & 31;
    if (plain !== undefined) return plain.charCodeAt(0);
    throw new CliError(
      "USAGE",
      `--detach-keys: "${key}" is not a key: use a character, or ctrl- and a letter or one of @ [ \\ ] ^ _`,
    );
  });
  if (bytes.length > MAX_KEYS) throw new CliError("USAGE", `--detach-keys: at most ${MAX_KEYS} keys`);
  return Buffer.from(bytes);
}
