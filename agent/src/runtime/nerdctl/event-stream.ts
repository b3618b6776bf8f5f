import { randomBytes } from "node:crypto";
import { linkSignals } from "@forage/common/link-signals";
import { type Clock, pause } from "../../clock.ts";
import { EventQueue } from "../event-queue.ts";
import { RuntimeError, type RuntimeEvent } from "../runtime.ts";
import { LineSplitter } from "./line-splitter.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";
import { parseEvent } from "./parse-event.ts";

export interface EventSource {
  readonly cli: NerdctlCli;
  readonly namespace: string;
  readonly clock: Clock;
}

// An event is under 1 kB, unless it carries the labels of an image.
const LINE_MAX_BYTES = 256 * 1024;
const STDERR_MAX_LENGTH = 4_000;
// The subscription takes 50 ms on an idle machine. Each triggered event costs one short nerdctl call.
const KNOCK_EVERY_MS = 100;
const KNOCKS_MAX = 50;
const KNOCK_LABEL = "forage.dev/listener";

/**
 * Follows `nerdctl events` until the signal aborts. nerdctl doesn't report when its subscription has begun. Therefore
 * this sets a new label on the namespace repeatedly until an event arrives. From then on no event is missed.
 */
export async function* streamEvents(
  source: EventSource,
  signal: AbortSignal,
): AsyncGenerator<RuntimeEvent, void, undefined> {
  if (signal.aborted) return;
  const queue = new EventQueue();
  const ended = new AbortController();
  const child = source.cli.spawn(["events", "--format", "{{json .}}"], { diesWithUs: true });
  const stop = () => {
    queue.close();
    child.kill("SIGKILL");
  };
  signal.addEventListener("abort", stop, { once: true });
  const heard = new Promise<void>((resolve) => {
    child.stdout.on("data", forward(source.namespace, queue, resolve));
  });
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => {
    complaint = `${complaint}${chunk}`.slice(-STDERR_MAX_LENGTH);
  });
  void child.ended.then((result) => {
    ended.abort();
    const why = complaint.trim() || (result.error?.message ?? `exit code ${result.exitCode}`);
    queue.fail(new RuntimeError("UNAVAILABLE", `nerdctl events ended: ${why}`, { retryable: true }));
  });
  const until = linkSignals(signal, ended.signal);
  try {
    void knockUntil(heard, source, until.signal).catch((error: RuntimeError) => queue.fail(error));
    yield* queue.read();
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
    ended.abort();
    until.unlink();
  }
}

function forward(namespace: string, queue: EventQueue, heard: () => void): (chunk: Buffer) => void {
  const splitter = new LineSplitter(LINE_MAX_BYTES);
  let listening = false;
  return (chunk) => {
    if (!listening) {
      listening = true;
      queue.push({ type: "listening" });
      heard();
    }
    for (const line of splitter.push(chunk)) {
      const event = parseEvent(line, namespace);
      if (event !== undefined) queue.push(event);
    }
  };
}

async function knockUntil(heard: Promise<void>, source: EventSource, signal: AbortSignal): Promise<void> {
  let done = false;
  void heard.then(() => {
    done = true;
  });
  for (let i = 0; i < KNOCKS_MAX; i += 1) {
    // Only these calls show whether containerd responds, so their failure ends the stream.
    await knock(source, signal);
    if (!done) await Promise.race([heard, pause(source.clock, KNOCK_EVERY_MS, signal)]);
    if (done || signal.aborted) return;
  }
  throw new RuntimeError("UNAVAILABLE", "containerd answers, but no event ever came", { retryable: true });
}

async function knock({ cli, namespace }: EventSource, signal: AbortSignal): Promise<void> {
  const label = `--label=${KNOCK_LABEL}=${randomBytes(6).toString("hex")}`;
  try {
    await cli.call(["namespace", "update", label, "--", namespace], { signal });
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof RuntimeError) || error.code === "UNAVAILABLE" || error.code === "TIMEOUT")
      throw error;
    // A new containerd doesn't have the namespace yet. If another client creates it meanwhile, that also triggers an
    // event.
    await cli.call(["namespace", "create", label, "--", namespace], { signal }).catch(() => undefined);
  }
}
