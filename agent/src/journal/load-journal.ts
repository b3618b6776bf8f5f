import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { ASIDE_SUFFIX } from "./durable-files.ts";
import type { JournalFiles } from "./journal-files.ts";
import {
  decodeIndex,
  EMPTY_INDEX,
  INDEX_FILE,
  type JournalIndex,
  parsePodFileName,
  podFileName,
} from "./journal-index.ts";
import { type JournalKey, WrongKeyError } from "./journal-key.ts";
import { decodePodState, type PodState } from "./pod-state.ts";
import { decodeRecord, isRecordOf, RECORD_KIND } from "./record-frame.ts";

export const PODS_DIRECTORY = "pods";
export const STATES_DIRECTORY = "states";
const STATE_SUFFIX = ".state";

/**
 * A file that could not be read. It was kept as `path`, for an operator to inspect or until the key is available again.
 */
export interface JournalProblem {
  /** The file's pod. Undefined for the index. */
  readonly uid?: string;
  readonly type: "index" | "pod" | "state";
  readonly path: string;
  readonly reason: string;
}

export interface LoadedJournal {
  readonly index: JournalIndex;
  readonly desired: Map<string, PodAssignment>;
  readonly states: Map<string, PodState>;
  /** Pods whose records are not encrypted because an older agent wrote them. */
  readonly plain: readonly string[];
  readonly problems: readonly JournalProblem[];
}

/** Reads all files, one at a time. Unreadable files are set aside and reported, and do not affect the others. */
export async function loadJournal(
  dir: string,
  key: JournalKey,
  files: JournalFiles,
  signal: AbortSignal,
): Promise<LoadedJournal> {
  for (const path of [dir, join(dir, PODS_DIRECTORY), join(dir, STATES_DIRECTORY)])
    await files.makeDirectory(path);
  const problems: JournalProblem[] = [];
  const podFiles = await listPodFiles(files, join(dir, PODS_DIRECTORY));
  const found = await loadIndex(files, dir, podFiles.length > 0, problems);
  const index = found ?? {
    ...EMPTY_INDEX,
    pods: newestOfEach(podFiles),
    generation: highestGeneration(podFiles),
  };
  const { desired, plain } = await loadPods(join(dir, PODS_DIRECTORY), index, {
    key,
    problems,
    files,
    signal,
  });
  await removeUnlisted(files, join(dir, PODS_DIRECTORY), podFiles, index);
  const states = await loadStates(files, join(dir, STATES_DIRECTORY), problems, signal);
  return { index, desired, states, plain, problems };
}

export function stateFileName(uid: string): string {
  return uid + STATE_SUFFIX;
}

interface PodFile {
  readonly uid: string;
  readonly generation: number;
}

async function loadIndex(
  files: JournalFiles,
  dir: string,
  expected: boolean,
  problems: JournalProblem[],
): Promise<JournalIndex | undefined> {
  const names = await files.list(dir);
  if (!names.includes(INDEX_FILE)) {
    if (expected) problems.push({ type: "index", path: join(dir, INDEX_FILE), reason: "missing" });
    return undefined;
  }
  try {
    return decodeIndex(await files.read(join(dir, INDEX_FILE)));
  } catch (error) {
    problems.push({ type: "index", path: await files.setAside(dir, INDEX_FILE), reason: reasonOf(error) });
    return undefined;
  }
}

async function listPodFiles(files: JournalFiles, dir: string): Promise<PodFile[]> {
  const parsed = (await files.list(dir)).map(parsePodFileName);
  return parsed.filter((file) => file !== undefined);
}

// Without an index, the newest file of each pod is the best available state. The next snapshot corrects it.
function newestOfEach(files: readonly PodFile[]): Map<string, number> {
  const newest = new Map<string, number>();
  for (const { uid, generation } of files) newest.set(uid, Math.max(generation, newest.get(uid) ?? 0));
  return newest;
}

function highestGeneration(files: readonly PodFile[]): number {
  return files.reduce((highest, file) => Math.max(highest, file.generation), 0);
}

async function loadPods(
  dir: string,
  index: JournalIndex,
  {
    key,
    problems,
    files,
    signal,
  }: { key: JournalKey; problems: JournalProblem[]; files: JournalFiles; signal: AbortSignal },
): Promise<{ desired: Map<string, PodAssignment>; plain: string[] }> {
  const desired = new Map<string, PodAssignment>();
  const plain: string[] = [];
  for (const [uid, generation] of index.pods) {
    signal.throwIfAborted();
    const name = podFileName(uid, generation);
    try {
      const bytes = await files.read(join(dir, name));
      const sealed = isRecordOf(RECORD_KIND.sealedPod, bytes);
      const payload = decodeRecord(sealed ? RECORD_KIND.sealedPod : RECORD_KIND.pod, bytes);
      const pod = PodAssignment.decode(sealed ? key.unseal(uid, payload) : payload);
      if (pod.uid !== uid) throw new Error(`the record holds pod ${pod.uid}`);
      desired.set(uid, pod);
      if (!sealed) plain.push(uid);
    } catch (error) {
      // Only the key is missing; the file itself may be intact.
      const path = error instanceof WrongKeyError ? join(dir, name) : await setAsideIfThere(files, dir, name);
      problems.push({ type: "pod", uid, path, reason: reasonOf(error) });
    }
  }
  return { desired, plain };
}

async function removeUnlisted(
  files: JournalFiles,
  dir: string,
  podFiles: readonly PodFile[],
  index: JournalIndex,
): Promise<void> {
  for (const name of await files.list(dir)) {
    // Damaged records are kept as long as their pod is assigned.
    const damaged = name.endsWith(ASIDE_SUFFIX) && parsePodFileName(name.slice(0, -ASIDE_SUFFIX.length));
    if (damaged && !index.pods.has(damaged.uid)) await files.remove(join(dir, name));
  }
  for (const { uid, generation } of podFiles) {
    if (index.pods.get(uid) !== generation) await files.remove(join(dir, podFileName(uid, generation)));
  }
}

async function loadStates(
  files: JournalFiles,
  dir: string,
  problems: JournalProblem[],
  signal: AbortSignal,
): Promise<Map<string, PodState>> {
  const states = new Map<string, PodState>();
  for (const name of await files.list(dir)) {
    signal.throwIfAborted();
    if (!name.endsWith(STATE_SUFFIX)) continue;
    const uid = name.slice(0, -STATE_SUFFIX.length);
    try {
      states.set(uid, decodePodState(decodeRecord(RECORD_KIND.state, await files.read(join(dir, name)))));
    } catch (error) {
      problems.push({
        type: "state",
        uid,
        path: await setAsideIfThere(files, dir, name),
        reason: reasonOf(error),
      });
    }
  }
  return states;
}

async function setAsideIfThere(files: JournalFiles, dir: string, name: string): Promise<string> {
  try {
    return await files.setAside(dir, name);
  } catch {
    return join(dir, name); // The file is missing, or on a disk that allows no renaming. The reason says which.
  }
}

function reasonOf(error: unknown): string {
  return messageOf(error);
}
