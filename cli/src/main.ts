#!/usr/bin/env node
import { homedir } from "node:os";
import { loadProgram } from "./commands/program.ts";
import { CliError } from "./errors.ts";
import { EXIT } from "./exit-code.ts";
import { run } from "./run.ts";

const SIGNALS = [
  ["SIGINT", EXIT.interrupted],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const;

async function main(): Promise<void> {
  // grpc-js uses the address as server name in the TLS handshake if there is no other name, which
  // causes a deprecation warning that users can't avoid.
  Object.assign(process, { noDeprecation: true });
  const argv = process.argv.slice(2);
  const interrupt = new AbortController();
  for (const [name, exitCode] of SIGNALS) {
    process.on(name, () => {
      // A second signal ends the process at once.
      if (interrupt.signal.aborted) process.exit(exitCode);
      interrupt.abort(new CliError("INTERRUPTED", "interrupted", { exitCode }));
    });
  }
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => interrupt.abort(explainLoss(error)));
  const exitCode = await run(await loadProgram(argv), argv, {
    env: process.env,
    homeDir: homedir(),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    nowMs: Date.now,
    randomId: () => crypto.randomUUID(),
    random: Math.random,
    interrupted: interrupt.signal,
  });
  // Without this call, a pending connection or an open pipe would keep the process alive.
  process.exit(exitCode);
}

function explainLoss(error: NodeJS.ErrnoException): CliError {
  if (error.code === "EPIPE") return new CliError("OUTPUT_CLOSED", "the reader of the output has closed it");
  return new CliError("OUTPUT_LOST", `the output can't be written: ${error.message}`);
}

void main();
