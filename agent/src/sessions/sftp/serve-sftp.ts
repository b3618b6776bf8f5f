import { once } from "node:events";
import { Directory } from "@forage/archive";
import { messageOf } from "@forage/common/message-of";
import { becomeUser } from "../become-user.ts";
import { FAILURE, ROOT_DESCRIPTOR } from "../container-program.ts";
import { RootedFiles } from "./rooted-files.ts";
import { SftpServer } from "./sftp-server.ts";

/** The first argument with which the agent's program runs this command. */
export const SERVE_SFTP = "serve-sftp";

/**
 * Serves one SFTP session of a container in a process of its own, so that the kernel enforces the rights of the container's user. The
 * arguments are the directory of relative paths and the user's ids. Packets come from standard input and go to standard output.
 * Returns the exit code.
 */
export async function serveSftp(args: readonly string[]): Promise<number> {
  const [start = "/", ...user] = args;
  try {
    // Root of the host may have more rights than root in a container.
    if (user[0] === "0") throw new Error("sftp is served to containers whose user is not root");
    becomeUser(user);
    const server = new SftpServer(new RootedFiles(Directory.ofDescriptor(ROOT_DESCRIPTOR), start), write);
    await server.serve(process.stdin);
    return 0;
  } catch (error) {
    process.stderr.write(`${FAILURE}${messageOf(error).split("\n", 1)[0]}\n`);
    return 1;
  }
}

async function write(packet: Buffer): Promise<void> {
  if (!process.stdout.write(packet)) await once(process.stdout, "drain");
}
