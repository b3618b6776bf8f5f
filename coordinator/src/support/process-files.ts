import type { RecentLines } from "@forage/common/recent-lines";
import type { Config } from "../config.ts";
import { shownConfig } from "./shown-config.ts";

/** The sources of the files about one coordinator process. */
export interface ProcessSources {
  readonly config: Config;
  readonly version: string;
  readonly startedMs: number;
  /** The coordinator's newest log lines. */
  readonly recentLog: RecentLines | undefined;
  readonly metrics: () => Promise<string>;
  readonly status: () => string;
  readonly nowMs: () => number;
  /** Returns the known state of the store as JSON. */
  readonly storeState: () => object;
}

/** A file whose content is made when it is sent. */
export interface PlannedFile {
  readonly path: string;
  /** Returns the content, which may have any length. */
  readonly content: () => Promise<string>;
}

/** Returns the files about a coordinator process, the most useful ones first. */
export function processFiles(sources: ProcessSources): PlannedFile[] {
  return [
    { path: "about.json", content: async () => aboutText(sources) },
    { path: "config.json", content: async () => asText(shownConfig(sources.config)) },
    { path: "log.jsonl", content: async () => logText(sources.recentLog) },
    { path: "metrics.txt", content: sources.metrics },
  ];
}

function aboutText({ version, startedMs, status, nowMs, storeState }: ProcessSources): string {
  return asText({
    version,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    madeAt: new Date(nowMs()).toISOString(),
    startedAt: new Date(startedMs).toISOString(),
    status: status(),
    store: storeState(),
    memoryBytes: process.memoryUsage(),
  });
}

function asText(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function logText(recentLog: RecentLines | undefined): string {
  if (recentLog === undefined) throw new Error("this coordinator keeps no log lines");
  return recentLog.text();
}
