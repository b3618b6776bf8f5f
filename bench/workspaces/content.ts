import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { WorkspacePhase } from "@forage/proto/core";
import type { System } from "../../hack/system/system.ts";
import type { WorkspaceCalls } from "../../hack/system/workspaces.ts";
import { peakMb, resetPeak } from "../apply/process-cost.ts";
import { median, secondsOf } from "./rounds.ts";
import { reaches } from "./start.ts";

export interface ContentSize {
  readonly megabytes: number;
  readonly files: number;
  /** The number of rounds. The median is shown. */
  readonly rounds: number;
}

const MEGABYTE = 1_000_000;
const LARGE_FILE_MEGABYTES = 32;
const FILES_PER_DIRECTORY = 200;
const ID = "content";
/**
 * The names, contents, owners, modes, times and links of all files except the agent's own record about the source of
 * the content.
 */
const DIGEST =
  "tar --create --file=- --format=posix --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime --sort=name --numeric-owner -- * | sha256sum";
const LINE = "export function compute(value: number): number { return value * 2; } // ";

/**
 * Measures the speed of backups and restores from the node's disk to the coordinator's content store and back. For
 * comparison, measures plain `tar | zstd` over the same files with the same level, written to the same disk. Throws if
 * restored content differs.
 */
export async function measureContent(
  { host, agent, coordinator }: System,
  calls: WorkspaceCalls,
  { megabytes, files, rounds }: ContentSize,
): Promise<Readonly<Record<string, number>>> {
  const contentOf = (id: string): string => join(host.dir, "agent", "workspaces", id, "volume", "content");
  const metadata = { metaId: ID };
  await calls.start(ID, { metadata });
  await reaches(calls, ID, WorkspacePhase.RUNNING);
  grow(contentOf(ID), megabytes, files);
  const digest = await digestOf(contentOf(ID));
  const plain = join(host.dir, "plain");
  mkdirSync(plain);
  const archive = join(plain, "archive.tar.zst");
  for (const { pid } of [agent, coordinator]) resetPeak(pid);
  const [backups, plainBackups, restores, plainRestores]: number[][] = [[], [], [], []];
  for (let round = 0; round < rounds; round++) {
    const pack = `tar -C '${contentOf(ID)}' --sort=name -cf - . | zstd -q -3 -T1 -f -o '${archive}'`;
    plainBackups?.push(await secondsOf(() => shell(`${pack} && sync '${archive}'`)));
    backups?.push(await secondsOf(() => calls.backup(ID)));
    const target = join(plain, "target");
    mkdirSync(target);
    const unpack = `zstd -q -d -c '${archive}' | tar -C '${target}' -xf -`;
    plainRestores?.push(await secondsOf(() => shell(`${unpack} && sync -f '${target}'`)));
    rmSync(target, { recursive: true });
  }
  const stop = async (id: string): Promise<void> => {
    await calls.stop(id);
    await reaches(calls, id, WorkspacePhase.STOPPED);
  };
  const stops = [await secondsOf(() => stop(ID))];
  for (let round = 0; round < rounds; round++) {
    const id = `restored-${round}`;
    const start = async (): Promise<void> => {
      await calls.start(id, { metadata });
      await reaches(calls, id, WorkspacePhase.RUNNING);
    };
    restores?.push(await secondsOf(start));
    if ((await digestOf(contentOf(id))) !== digest)
      throw new Error(`the content of ${id} differs from ${ID}`);
    stops.push(await secondsOf(() => stop(id)));
  }
  const speed = (seconds: number[] | undefined): number => megabytes / median(seconds ?? []);
  return {
    "content (MB)": megabytes,
    "files in it": files,
    "archive (MB)": statSync(archive).size / MEGABYTE,
    "BackupWorkspace (MB/s)": speed(backups),
    "plain tar | zstd to a file (MB/s)": speed(plainBackups),
    "stop → STOPPED, with the final backup (s)": median(stops),
    "start → RUNNING, restored (MB/s)": speed(restores),
    "plain zstd | tar from a file (MB/s)": speed(plainRestores),
    "agent, highest resident memory (MB)": peakMb(agent.pid),
    "coordinator, highest resident memory (MB)": peakMb(coordinator.pid),
  };
}

/** Creates files. Half of the bytes are text in many small files, half are random in large ones. */
function grow(directory: string, megabytes: number, files: number): void {
  const textBytes = Math.floor((megabytes * MEGABYTE) / 2 / files);
  for (let index = 0; index < files; index++) {
    const below = join(directory, `dir-${Math.floor(index / FILES_PER_DIRECTORY)}`);
    if (index % FILES_PER_DIRECTORY === 0) mkdirSync(below);
    const line = `${LINE}${index}\n`;
    const text = line.repeat(Math.ceil(textBytes / line.length)).slice(0, textBytes);
    writeFileSync(join(below, `file-${index}.ts`), text);
  }
  for (let written = 0; written < megabytes / 2; written += LARGE_FILE_MEGABYTES)
    writeFileSync(join(directory, `large-${written}`), randomBytes(LARGE_FILE_MEGABYTES * MEGABYTE));
}

function digestOf(directory: string): Promise<string> {
  return shell(`cd '${directory}' && ${DIGEST}`);
}

/** Runs a shell script, and returns its output. */
async function shell(command: string): Promise<string> {
  const child = spawn("bash", ["-o", "pipefail", "-c", command], { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (code !== 0) throw new Error(`exit code ${code}: ${command}`);
  return output;
}
