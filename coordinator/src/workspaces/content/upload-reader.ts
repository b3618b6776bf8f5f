import type { UploadEnd, UploadRequest, UploadStart } from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../../errors.ts";
import type { Digest } from "./content-store.ts";
import type { IdleWatch } from "./idle-watch.ts";
import { assertObjectName } from "./object-name.ts";
import { untilAborted } from "./until-aborted.ts";

/** Reads the messages of one upload: its start, its data and its end. */
export class UploadReader {
  readonly #requests: AsyncIterator<UploadRequest>;
  readonly #idle: Pick<IdleWatch, "waiting" | "progressed">;
  #end: UploadEnd | undefined;

  constructor(requests: AsyncIterable<UploadRequest>, idle: Pick<IdleWatch, "waiting" | "progressed">) {
    this.#requests = requests[Symbol.asyncIterator]();
    this.#idle = idle;
  }

  /**
   * Returns the start message. Throws INVALID if the first message is not a start with a valid
   * object name.
   */
  async start(signal: AbortSignal): Promise<UploadStart> {
    for await (const part of untilAborted(only(this.#next()), signal)) {
      if (part?.$case !== "start") break;
      assertObjectName(part.value.object);
      return part.value;
    }
    throw new CoordinatorError("INVALID", "the first part of an upload must be its start");
  }

  /** Yields the data up to the end message. Throws INVALID if the stream ends without one. */
  async *data(): AsyncGenerator<Uint8Array> {
    while (true) {
      const part = await this.#next();
      if (part?.$case === "data") yield part.value;
      else if (part?.$case === "end") {
        this.#end = part.value;
        return;
      } else
        throw new CoordinatorError(
          "INVALID",
          part === undefined
            ? "the upload's stream stopped before its end part"
            : "an upload must have exactly one start part",
        );
    }
  }

  /** Throws INVALID unless the archive has the size and digest in the start and end messages. */
  verify(start: UploadStart, actual: Digest): void {
    const end = this.#end;
    if (end === undefined || end.sha256 === "")
      throw new CoordinatorError("INVALID", "the end part of an upload must hold the archive's digest");
    const atStart = {
      sizeBytes: Number(start.sizeBytes || end.sizeBytes),
      sha256: start.sha256 || end.sha256,
    };
    if (matches(digestOf(end), actual) && matches(atStart, actual)) return;
    throw new CoordinatorError(
      "INVALID",
      `the archive arrived with ${actual.sizeBytes} bytes and digest ${actual.sha256}, but ${end.sizeBytes} bytes and digest ${end.sha256} were announced: send it again`,
    );
  }

  async #next(): Promise<UploadRequest["part"]> {
    this.#idle.waiting();
    try {
      const next = await this.#requests.next();
      if (next.done) return undefined;
      if (next.value.part === undefined) throw new CoordinatorError("INVALID", "an upload's part is empty");
      return next.value.part;
    } finally {
      this.#idle.progressed();
    }
  }
}

export function digestOf({ sizeBytes, sha256 }: UploadStart | UploadEnd): Digest {
  return { sizeBytes: Number(sizeBytes), sha256 };
}

/** Reports whether both are the same archive. An unknown digest never matches. */
export function matches(announced: Digest, actual: Digest): boolean {
  return (
    announced.sha256 !== "" && announced.sha256 === actual.sha256 && announced.sizeBytes === actual.sizeBytes
  );
}

async function* only<T>(item: Promise<T>): AsyncGenerator<T> {
  yield await item;
}
