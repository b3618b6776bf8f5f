import { messageOf } from "@forage/common/message-of";
import { hasFile, readPrivateFile, writePrivateFile } from "@forage/identity/private-file";
import { CoordinatorError } from "../../errors.ts";

/** Reads the host key, and makes it if the file is missing: clients recognise the gateway by it over restarts. */
export async function loadHostKey(path: string, generate: () => string): Promise<string> {
  try {
    if (!(await hasFile(path))) await writePrivateFile(path, generate(), { replace: false });
    return await readPrivateFile(path);
  } catch (cause) {
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `workspaces.ssh.hostKeyFile: ${path} can't be used: ${messageOf(cause)}`,
      { cause },
    );
  }
}
