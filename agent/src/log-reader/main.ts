import { parseArgs } from "node:util";
import { messageOf } from "@forage/common/message-of";
import { readerSocket } from "../logs/stream-places.ts";
import { LogReader } from "./log-reader.ts";
import { serveRequests } from "./serve-requests.ts";

const EXIT_USAGE = 2;
// The unit counts this exit code as success, so systemd doesn't restart the reader.
const EXIT_IDLE = 75;
// The first descriptor that systemd passes.
const LISTENING_FD = 3;
// With systemd's socket activation the reader is started again on demand.
const IDLE_MS = 60_000;

/**
 * Reads the output of all containers of the host with separate stdout and stderr. It is a separate program, so that
 * restarts and upgrades of the agent never block a container that writes much.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { dir: { type: "string" } } });
  if (!values.dir?.startsWith("/")) {
    process.stderr.write("usage: forage-logs --dir DIR\n");
    process.exit(EXIT_USAGE);
  }
  const reader = new LogReader({
    dir: values.dir,
    nowMs: () => Date.now(),
    onError: (logFile, error) => say("log-not-read", { logFile, error: String(error) }),
  });
  const inherited = process.env.LISTEN_PID === String(process.pid) && process.env.LISTEN_FDS === "1";
  reader.resume();
  const server = await serveRequests({
    at: inherited ? LISTENING_FD : readerSocket(values.dir),
    answer: (request) => reader.answer(request),
  });
  say("log-reader-started", { logs: reader.size, pid: process.pid });
  if (inherited) setInterval(() => reader.size === 0 && process.exit(EXIT_IDLE), IDLE_MS).unref();
  // The pipes keep their content for the next reader.
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.once(signal, () => {
      reader.close();
      server.close();
      process.exit(0);
    });
}

function say(event: string, fields: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify({ time: Date.now(), program: "logs", event, ...fields })}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`forage-logs: ${messageOf(error)}\n`);
  process.exit(1);
});
