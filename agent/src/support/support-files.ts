import { messageOf } from "@forage/common/message-of";
import type { RecentLines } from "@forage/common/recent-lines";
import { scrubText } from "@forage/common/scrub-text";
import type { SupportFile } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { LinkState } from "../link/link-state.ts";
import { configText } from "./shown-config.ts";

/** The sources of an agent's files. */
export interface SupportSources {
  readonly config: Config;
  readonly version: string;
  readonly recentLog: RecentLines | undefined;
  readonly clock: Clock;
  readonly problems: () => readonly string[];
  readonly link: () => LinkState;
  readonly assignmentRevision: () => bigint;
  readonly metrics: () => Promise<string>;
  /** Examines the host, as `forage-agent check` does. */
  readonly checks: (config: Config) => Promise<string>;
}

/** The size limit of a file. Each file is sent in one message of the stream to the coordinator. */
const MAX_FILE_LENGTH = 768 * 1024;
/** The coordinator waits longer than this. */
const CHECKS_LIMIT_MS = 25_000;

/** Yields the agent's files for a support bundle, without secrets. A file that can't be created contains the reason. */
export async function* supportFiles(sources: SupportSources): AsyncGenerator<SupportFile> {
  const { config, recentLog, metrics } = sources;
  yield await supportFile("about.json", async () => aboutText(sources));
  yield await supportFile("config.json", async () => configText(config));
  yield await supportFile("log.jsonl", async () => {
    if (recentLog === undefined) throw new Error("this agent keeps no log lines");
    return recentLog.text();
  });
  yield await supportFile("metrics.txt", metrics);
  yield await supportFile("checks.json", () => checksInTime(sources));
}

/** Creates one file. A file that is too large loses its beginning, because the newest lines of logs are at the end. */
export async function supportFile(path: string, read: () => Promise<string>): Promise<SupportFile> {
  try {
    const text = scrubText(await read());
    if (text.length <= MAX_FILE_LENGTH) return { path, content: text, problem: "" };
    const from = text.indexOf("\n", text.length - MAX_FILE_LENGTH) + 1;
    return { path, content: text.slice(from), problem: `the first ${from} characters were left out` };
  } catch (error) {
    return { path, content: "", problem: scrubText(messageOf(error)) };
  }
}

function aboutText({ version, clock, problems, link, assignmentRevision }: SupportSources): string {
  const about = {
    ...{ version, node: process.version, platform: `${process.platform} ${process.arch}` },
    madeAt: new Date(clock.nowMs()).toISOString(),
    upSeconds: Math.round(process.uptime()),
    memoryBytes: process.memoryUsage(),
    ...{ problems: problems(), link: link(), assignmentRevision: String(assignmentRevision()) },
  };
  return `${JSON.stringify(about, undefined, 2)}\n`;
}

async function checksInTime({ checks, config, clock }: SupportSources): Promise<string> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.schedule(CHECKS_LIMIT_MS, () =>
    late.reject(new Error(`the checks did not end within ${CHECKS_LIMIT_MS / 1000} s`)),
  );
  try {
    return await Promise.race([checks(config), late.promise]);
  } finally {
    cancel();
  }
}
