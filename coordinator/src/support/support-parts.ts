import { messageOf } from "@forage/common/message-of";
import type { PlannedFile } from "./process-files.ts";
import { limited, type SupportFile } from "./support-file.ts";

/** A part of a file. Consecutive parts with the same path form one file. */
export interface SupportPart {
  readonly path: string;
  readonly content: Buffer;
  readonly problem: string;
}

/**
 * The length limit of a file, enough for a busy cluster of a thousand nodes except for its oldest
 * events.
 */
const MAX_FILE_LENGTH = 8 * 1024 * 1024;
const MAX_TOTAL_LENGTH = 96 * 1024 * 1024;
/**
 * The length of a part. It fits into a message of 4 MiB even if each character takes three bytes.
 */
const CHUNK_LENGTH = 256 * 1024;

/** Reads the file. If that fails, the result contains the reason. */
export function readPlanned({ path, content }: PlannedFile): Promise<SupportFile> {
  return content().then(
    (text) => ({ path, content: text, problem: "" }),
    (error: unknown) => ({ path, content: "", problem: messageOf(error) }),
  );
}

/** Yields as much of the files as the limits allow. `clean` removes secrets. */
export async function* supportParts(
  files: AsyncIterable<SupportFile>,
  clean: (text: string) => string,
): AsyncGenerator<SupportPart> {
  let room = MAX_TOTAL_LENGTH;
  for await (const file of files) {
    const { path, content, problem } = limited(
      { ...file, content: clean(file.content), problem: clean(file.problem) },
      Math.min(MAX_FILE_LENGTH, room),
    );
    room -= content.length;
    for (let at = 0; at < content.length; at += CHUNK_LENGTH)
      yield { path, content: Buffer.from(content.slice(at, at + CHUNK_LENGTH)), problem: "" };
    if (content === "" || problem !== "") yield { path, content: Buffer.alloc(0), problem };
  }
}
