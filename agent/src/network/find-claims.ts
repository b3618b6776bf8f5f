import type { NoteDamage } from "../damage-reports.ts";
import type { InstanceNames } from "./instance-names.ts";
import { isHostNetwork, type KnownPod } from "./network.ts";
import { listNamespaces, namespacePath } from "./network-namespaces.ts";
import { namespaceOfProcess, readSandbox } from "./read-sandbox.ts";
import type { RunCommand } from "./run-command.ts";
import type { LoadedRecords, SandboxRecord, SandboxRecords } from "./sandbox-records.ts";

export interface ClaimSources {
  readonly names: InstanceNames;
  readonly run: RunCommand;
  readonly records: SandboxRecords;
  readonly loaded: LoadedRecords;
  /** The records whose sandbox exists. */
  readonly intact: readonly SandboxRecord[];
  /** Returns the records whose sandbox exists, and repairs their leases. */
  readonly checkIntact: (records: readonly SandboxRecord[]) => Promise<readonly SandboxRecord[]>;
  readonly noteDamage: NoteDamage;
}

const REMEDY = "the sandbox was read back from the kernel";

/**
 * Returns the sandboxes of the known pods by uid. The kernel decides by the namespace of a running container, then the
 * pod's own memory, then the record, so a single damaged file does not disconnect a pod.
 */
export async function findClaims(
  known: readonly KnownPod[],
  sources: ClaimSources,
): Promise<Map<string, SandboxRecord>> {
  const owners = await ownersOf(known, sources.names);
  const read = await readUnrecorded(owners, sources);
  const claims = new Map<string, SandboxRecord>();
  for (const record of [...sources.intact, ...read]) {
    const owner = owners.get(record.namespace);
    if (owner !== undefined) claims.set(owner, await recordedFor(owner, record, sources));
  }
  const uids = new Set(known.map(({ podUid }) => podUid));
  for (const record of sources.intact) {
    const { podUid } = record;
    if (podUid === undefined || owners.has(record.namespace)) continue;
    if (uids.has(podUid) && !claims.has(podUid)) claims.set(podUid, record);
  }
  return claims;
}

/** Returns the owner of each namespace, as far as it is known without the records. */
async function ownersOf(known: readonly KnownPod[], names: InstanceNames): Promise<Map<string, string>> {
  const owners = new Map<string, string>();
  const found = new Set<string>();
  for (const { podUid, processes = [] } of known) {
    for (const pid of processes) {
      const namespace = await namespaceOfProcess(names, pid);
      if (namespace === undefined) continue;
      owners.set(namespace, podUid);
      found.add(podUid);
    }
  }
  const present = await listNamespaces(names.namespacePrefix);
  const byPath = new Map(present.map((name) => [namespacePath(name), name]));
  for (const { podUid, sandbox } of known) {
    if (sandbox === undefined || isHostNetwork(sandbox) || found.has(podUid)) continue;
    const namespace = byPath.get(sandbox.namespacePath);
    if (namespace !== undefined && !owners.has(namespace)) owners.set(namespace, podUid);
  }
  return owners;
}

/** Reads sandboxes from the kernel whose records are missing, damaged or inconsistent with the kernel. */
async function readUnrecorded(
  owners: ReadonlyMap<string, string>,
  { names, run, loaded, intact, checkIntact }: ClaimSources,
): Promise<readonly SandboxRecord[]> {
  const recorded = new Set(intact.map(({ namespace }) => namespace));
  const desired = new Set(owners.keys());
  // A record that can be read but is inconsistent may still name its pod.
  for (const { namespace, podUid } of loaded.records) if (podUid !== undefined) desired.add(namespace);
  const read: SandboxRecord[] = [];
  for (const namespace of desired) {
    if (recorded.has(namespace)) continue;
    const found = await readSandbox(run, names, namespace);
    const podUid = loaded.records.find((it) => it.namespace === namespace)?.podUid;
    if (found !== undefined) read.push({ ...found, ...(podUid !== undefined && { podUid }) });
  }
  return checkIntact(read);
}

/** Returns the record of the sandbox that was found, and writes it unless the record on disk is equal. */
async function recordedFor(
  podUid: string,
  found: SandboxRecord,
  { records, loaded, noteDamage }: ClaimSources,
): Promise<SandboxRecord> {
  const record = { ...found, podUid };
  const before = loaded.records.find(({ namespace }) => namespace === record.namespace);
  if (before !== undefined && sameRecord(before, record)) return record;
  const reason =
    before !== undefined
      ? "it does not fit what the kernel has"
      : (loaded.damaged.get(record.namespace) ?? "it is missing");
  noteDamage(records.pathOf(record.namespace), reason, `${REMEDY}, pod ${podUid} keeps it`);
  await records.write(record);
  return record;
}

function sameRecord(a: SandboxRecord, b: SandboxRecord): boolean {
  return a.podUid === b.podUid && a.address === b.address && a.hostInterface === b.hostInterface;
}
