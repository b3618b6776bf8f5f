import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type S3Server, startS3Server } from "../../hack/lib/s3-server.ts";
import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { startSystem } from "../../hack/system/system.ts";
import { WorkspaceCalls } from "../../hack/system/workspaces.ts";
import { measureBurst } from "./burst.ts";
import { type ContentSize, measureContent } from "./content.ts";
import { measureDedupe } from "./dedupe.ts";
import { measureIdle } from "./idle.ts";
import { measureStart } from "./start.ts";
import { measureSubscribers } from "./subscribers.ts";

const ON_HOST = ["start", "burst", "content"];
const DEFAULT_PARTS = [...ON_HOST, "subscribers", "idle"];
const PARTS = [...DEFAULT_PARTS, "dedupe"];
/** The number of workspaces that start and stop at the same time while there are subscribers. */
const BURST = 200;
/** The room for the archives of the other parts. */
const SMALL_ARCHIVES_MEGABYTES = 3_200;
/** The number of pods of the host besides those of the burst. */
const OTHER_PODS = 20;

/**
 * Measures workspaces: the time from a start to RUNNING on real containers, backups and restores compared with plain
 * `tar | zstd` in the same run, many concurrent starts, the cost of subscribers, and of idle workspaces. Needs root.
 */
export async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      megabytes: { type: "string", default: "512" },
      files: { type: "string", default: "20000" },
      rounds: { type: "string", default: "3" },
      burst: { type: "string", default: "20" },
      quota: { type: "string", default: "0" },
      s3: { type: "boolean", default: false },
      subscribers: { type: "string", default: "1000" },
      idle: { type: "string", default: "1000" },
      only: { type: "string", default: DEFAULT_PARTS.join() },
      tree: { type: "string", default: join(import.meta.dirname, "../../node_modules") },
    },
  });
  const parts = values.only.split(",");
  const unknown = parts.filter((part) => !PARTS.includes(part));
  if (unknown.length > 0) throw new RangeError(`--only: ${unknown} must be of ${PARTS}`);
  const { megabytes, files, rounds } = values;
  const size = { megabytes: Number(megabytes), files: Number(files), rounds: Number(rounds) };
  if (parts.some((part) => ON_HOST.includes(part)))
    await measureHost(parts, size, {
      burst: Number(values.burst),
      diskGigabytes: Number(values.quota),
      isS3: values.s3,
    });
  if (parts.includes("subscribers")) report(await measureSubscribers(BURST, Number(values.subscribers)));
  if (parts.includes("dedupe")) report(await measureDedupe(values.tree));
  if (parts.includes("idle")) report(await measureIdle(Number(values.idle)));
}

interface HostOptions {
  readonly burst: number;
  /** The size limit of each content in GB; 0 means no limit. */
  readonly diskGigabytes: number;
  /** Whether archives are in an S3 server on this machine, and not in a directory. */
  readonly isS3: boolean;
}

async function measureHost(
  parts: readonly string[],
  size: ContentSize,
  { burst, diskGigabytes, isS3 }: HostOptions,
): Promise<void> {
  const host = await startTestHost();
  const s3 = isS3 ? await startS3Server({ capacityMegabytes: capacityFor(size) }) : undefined;
  try {
    const classes = [{ id: "small", cpu: "1m", memory: "16Mi", diskGigabytes }];
    const command = ["sh", "-c", 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done'];
    const system = await startSystem(host, {
      agent: { workspaces: { enabled: true }, podsMax: burst + OTHER_PODS },
      coordinator: {
        workspaces: { enabled: true, classes, command, content: s3 === undefined ? {} : contentIn(s3, host) },
      },
    });
    const calls = new WorkspaceCalls(system);
    try {
      if (parts.includes("start")) report(await measureStart(calls, host));
      if (parts.includes("burst")) report(await measureBurst(system, calls, burst));
      if (parts.includes("content")) report(await measureContent(system, calls, size));
    } finally {
      calls.close();
    }
  } finally {
    await host.close();
    await s3?.close();
  }
}

/**
 * Returns the capacity for archives. An archive is at most as large as its content, and archives that no generation
 * needs are deleted only an hour later.
 */
function capacityFor({ megabytes, rounds }: ContentSize): number {
  return megabytes * (2 * rounds + 1) + SMALL_ARCHIVES_MEGABYTES;
}

/** Returns the settings of a content store in the server's bucket. */
function contentIn({ endpoint, bucket, credentials }: S3Server, host: TestHost): object {
  const credentialsFile = join(host.dir, "s3.yaml");
  writeFileSync(credentialsFile, JSON.stringify(credentials), { mode: 0o600 });
  return { s3: { endpoint, bucket, credentialsFile } };
}

function report(figures: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(figures)) console.log(`${name.padEnd(56)} ${value.toFixed(2)}`);
}
