import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { basename } from "node:path";
import { SetupError } from "../lib/setup-error.ts";
import { parseAddress } from "./flags.ts";

/** Throws PORT_TAKEN with the name of the process that uses the port, if `address` can't be listened on. */
export async function assertPortFree(address: string, flag: string): Promise<void> {
  const { host, port } = parseAddress(address, flag);
  const error = await tryListen(host, port);
  if (!error) return;
  if (error.code === "EADDRINUSE") {
    const holder = findHolder(port);
    throw new SetupError(
      "PORT_TAKEN",
      `${address} is taken${holder ? ` by ${holder.name} (pid ${holder.pid})` : ""}`,
      `stop it, or choose another with ${flag} ${host}:${port + 10}`,
    );
  }
  throw new SetupError(
    "PORT_TAKEN",
    `can't listen on ${address}: ${error.message}`,
    `choose another with ${flag} HOST:PORT`,
  );
}

export async function isPortFree(host: string, port: number): Promise<boolean> {
  return (await tryListen(host, port)) === undefined;
}

function tryListen(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on("error", (error) => resolve(error));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** Returns the process that listens on a TCP port, found in the kernel's socket table. */
function findHolder(port: number): { pid: number; name: string } | undefined {
  const inodes = new Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap((path) => listeningInodes(path, port)));
  for (const pid of list("/proc").filter((name) => /^\d+$/.test(name))) {
    for (const fd of list(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(readLink(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode && inodes.has(inode)) return { pid: Number(pid), name: readName(pid) };
    }
  }
  return undefined;
}

function listeningInodes(table: string, port: number): string[] {
  const LISTEN = "0A";
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync(table, "utf8").split("\n").slice(1);
  return lines.flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    return fields[1]?.endsWith(suffix) && fields[3] === LISTEN ? (fields[9] ?? []) : [];
  });
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/**
 * Returns a program's name, with its script. The kernel's own name of a process is that of its main thread, which
 * programs change.
 */
function readName(pid: string): string {
  try {
    return programName(readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0"));
  } catch {
    return "a process";
  }
}

/** Returns a name such as `nginx` or `node coordinator.mjs` for the words of a command line. */
export function programName([program = "", ...words]: readonly string[]): string {
  // Programs that rename themselves have a single word: "nginx: master process nginx".
  const name = /^([\w.+-]+):?$/.exec(basename(program.split(" ", 1)[0] ?? ""))?.[1];
  if (name === undefined) return "a process";
  const script = /^(node|python|perl|ruby|sh|bash|dash)[\d.]*$/.test(name)
    ? words.find((word) => !word.startsWith("-"))
    : undefined;
  const shown = basename(script ?? "").replaceAll(/[^\w.+-]/g, "?");
  return shown === "" ? name : `${name} ${shown}`;
}
