/** As much of what was shown last is remembered; repeating lines are told apart by what surrounds them. */
const rememberedBytes = 16 * 1024;
/** More than this is not held back while what was shown last is looked for. */
const heldMaxBytes = 2 * 1024 * 1024;

/**
 * Goes on with a log that is read anew from some point before: holds back what comes until it finds what was shown last, and shows
 * what is behind it. So nothing is shown twice and nothing is left out, as long as the log still has it.
 */
export class Overlap {
  #shown: Buffer = Buffer.alloc(0);
  #held: Buffer[] | undefined;
  #heldBytes = 0;

  /** The log is read anew from here on. */
  restart(): void {
    this.#held = this.#shown.length === 0 ? undefined : [];
    this.#heldBytes = 0;
  }

  /** What of this is to be shown now. */
  take(data: Uint8Array): Uint8Array {
    if (this.#held === undefined) return this.#show(data);
    this.#held.push(Buffer.from(data));
    this.#heldBytes += data.length;
    const all = Buffer.concat(this.#held);
    const at = all.lastIndexOf(this.#shown);
    if (at >= 0) {
      this.#held = undefined;
      return this.#show(all.subarray(at + this.#shown.length));
    }
    return this.#heldBytes > heldMaxBytes ? this.flush() : new Uint8Array();
  }

  /** What was shown last is not there any more: all that was held back is new. */
  flush(): Uint8Array {
    const held = this.#held ?? [];
    this.#held = undefined;
    return this.#show(Buffer.concat(held));
  }

  #show(data: Uint8Array): Uint8Array {
    this.#shown = Buffer.concat([this.#shown, data.subarray(-rememberedBytes)]).subarray(-rememberedBytes);
    return data;
  }
}
