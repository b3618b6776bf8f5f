/**
 * The amount of shown output that is kept. Repeated lines are distinguished by the lines around
 * them.
 */
const REMEMBERED_BYTES = 16 * 1024;
/** The limit of data that is buffered during the search for the last shown lines. */
const HELD_MAX_BYTES = 2 * 1024 * 1024;

/**
 * Resumes a log that is read again from an earlier point. Buffers data until it finds the last
 * shown bytes, and returns what follows them, so that each byte is shown once as long as the log
 * still has these bytes.
 */
export class Overlap {
  #shown: Buffer = Buffer.alloc(0);
  #held: Buffer[] | undefined;
  #heldBytes = 0;

  /** Starts the search: the log is read again from here. */
  restart(): void {
    this.#held = this.#shown.length === 0 ? undefined : [];
    this.#heldBytes = 0;
  }

  /** Returns the part of the data to show now. */
  push(data: Uint8Array): Uint8Array {
    if (this.#held === undefined) return this.#show(data);
    this.#held.push(Buffer.from(data));
    this.#heldBytes += data.length;
    const all = Buffer.concat(this.#held);
    const at = all.lastIndexOf(this.#shown);
    if (at >= 0) {
      this.#held = undefined;
      return this.#show(all.subarray(at + this.#shown.length));
    }
    return this.#heldBytes > HELD_MAX_BYTES ? this.flush() : new Uint8Array();
  }

  /** Returns all buffered data, because the log no longer contains the last shown bytes. */
  flush(): Uint8Array {
    const held = this.#held ?? [];
    this.#held = undefined;
    return this.#show(Buffer.concat(held));
  }

  #show(data: Uint8Array): Uint8Array {
    this.#shown = Buffer.concat([this.#shown, data.subarray(-REMEMBERED_BYTES)]).subarray(-REMEMBERED_BYTES);
    return data;
  }
}
