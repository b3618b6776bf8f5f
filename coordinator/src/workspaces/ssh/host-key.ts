import { messageOf } from "@forage/common/message-of";
import { hasFile, readPrivateFile, writePrivateFile } from "@forage/identity/private-file";
import { CoordinatorError } from "../../errors.ts";

/**
 * The most attempts to make a key. About one in 250 keys of the library lacks a leading zero and
 * can't be parsed.
 */
const MAX_TRIES = 20;

/** Generates and parses keys. */
export interface KeyMaker {
  readonly generate: () => string;
  readonly isReadable: (key: string) => boolean;
}

/**
 * Reads the host key. If the file is missing, generates a key and stores it, so that clients
 * recognize the gateway after a restart.
 */
export async function loadHostKey(path: string, maker: KeyMaker): Promise<string> {
  try {
    if (!(await hasFile(path))) await writePrivateFile(path, makeKey(maker), { replace: false });
    return await readPrivateFile(path);
  } catch (cause) {
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `workspaces.ssh.hostKeyFile: ${path} can't be used: ${messageOf(cause)}`,
      { cause },
    );
  }
}

function makeKey({ generate, isReadable }: KeyMaker): string {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const key = generate();
    if (isReadable(key)) return key;
  }
  throw new Error("no readable key could be made");
}
