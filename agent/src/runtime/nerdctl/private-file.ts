import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { join } from "node:path";

export interface PrivateFile {
  /** The path at which a child process finds the file while it is open. */
  readonly path: string;
  /** Returns the current content. */
  read(): Promise<string>;
  close(): Promise<void>;
}

/**
 * Creates a file for exchanging text with a child process. No other user can read it, and it disappears even if this
 * process is killed, because it has no name: the child reaches it through this process's open descriptor.
 */
export async function openPrivateFile(dir: string, text: string): Promise<PrivateFile> {
  const name = join(dir, `.private-${randomBytes(8).toString("hex")}`);
  const { O_RDWR, O_CREAT, O_EXCL } = constants;
  const file = await open(name, O_RDWR | O_CREAT | O_EXCL, 0o600);
  try {
    await unlink(name);
    await file.writeFile(text);
  } catch (error) {
    await file.close();
    throw error;
  }
  return {
    path: `/proc/${process.pid}/fd/${file.fd}`,
    read: () => readWhole(file),
    close: () => file.close(),
  };
}

async function readWhole(file: FileHandle): Promise<string> {
  const { size } = await file.stat();
  const bytes = Buffer.alloc(Math.min(size, READ_MAX_BYTES));
  const { bytesRead } = await file.read(bytes, 0, bytes.length, size - bytes.length);
  return bytes.toString("utf8", 0, bytesRead);
}

// Only the end is relevant: the program's last output.
const READ_MAX_BYTES = 64 * 1024;
