import { WorkspaceStatus } from "@forage/proto/core";
import {
  InstanceRecord,
  InstanceSecrets,
  InstanceSecretsRecord,
} from "@forage/proto/forage/workspaces/v1/records";
import { encodeRecord } from "../model/codec.ts";
import { hashMessage } from "../model/hash.ts";
import type { Vault } from "../objects/vault.ts";
import type { Op } from "../store/index.ts";
import { instanceKey, secretsKey } from "./keys.ts";
import { statusOf } from "./phase/status.ts";

/** Room for two million million updates before a restore of the store must count for more than one of them. */
const EPOCH_BITS = 40n;

/** Returns the write of a record that changed. Its status version grows if its published status changed. */
export function instanceWrite(before: InstanceRecord | undefined, after: InstanceRecord, epoch: number): Op {
  return {
    kind: "put",
    key: instanceKey(after.id),
    value: encodeRecord(InstanceRecord, versioned(before, after, epoch)),
  };
}

/** Returns the record with the status version that it is stored with. */
export function versioned(
  before: InstanceRecord | undefined,
  after: InstanceRecord,
  epoch: number,
): InstanceRecord {
  if (before !== undefined && publishedHash(before) === publishedHash(after)) return after;
  const next = (before?.statusVersion ?? 0n) + 1n;
  // A store that was restored from a backup lost versions that clients have seen.
  const first = BigInt(epoch) << EPOCH_BITS;
  return { ...after, statusVersion: next > first ? next : first };
}

function publishedHash(record: InstanceRecord): string {
  return hashMessage(WorkspaceStatus, { ...statusOf(record, "", ""), statusVersion: 0n });
}

export function secretsWrite(id: string, secrets: InstanceSecrets, vault: Vault): Op {
  const key = secretsKey(id);
  const sealed = vault.sealBytes(InstanceSecrets.encode(secrets).finish(), key);
  return { kind: "put", key, value: encodeRecord(InstanceSecretsRecord, { key: sealed }) };
}

/** Throws INTERNAL if the record can't be decrypted. */
export function openSecrets(id: string, record: InstanceSecretsRecord, vault: Vault): InstanceSecrets {
  if (record.key === undefined) return InstanceSecrets.fromPartial({});
  return InstanceSecrets.decode(vault.openBytes(record.key, secretsKey(id)));
}
