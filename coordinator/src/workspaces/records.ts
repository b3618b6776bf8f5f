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

/**
 * The shift of the store's epoch in a version: 2^40 updates fit between two restores of the store.
 */
const EPOCH_BITS = 40n;

/**
 * Returns the write of a changed record. Its status version grows if its published status changed.
 */
export function instanceWrite(before: InstanceRecord | undefined, after: InstanceRecord, epoch: number): Op {
  return {
    type: "put",
    key: instanceKey(after.id),
    value: encodeRecord(InstanceRecord, versioned(before, after, epoch)),
  };
}

/** Returns the record with its new status version. */
export function versioned(
  before: InstanceRecord | undefined,
  after: InstanceRecord,
  epoch: number,
): InstanceRecord {
  if (before !== undefined && publishedHash(before) === publishedHash(after)) return after;
  const next = (before?.statusVersion ?? 0n) + 1n;
  // After a restore from a backup, versions must exceed those that clients received before.
  const first = BigInt(epoch) << EPOCH_BITS;
  return { ...after, statusVersion: next > first ? next : first };
}

function publishedHash(record: InstanceRecord): string {
  return hashMessage(WorkspaceStatus, { ...statusOf(record, "", ""), statusVersion: 0n });
}

export function secretsWrite(id: string, secrets: InstanceSecrets, vault: Vault): Op {
  const key = secretsKey(id);
  const sealed = vault.sealBytes(InstanceSecrets.encode(secrets).finish(), key);
  return { type: "put", key, value: encodeRecord(InstanceSecretsRecord, { key: sealed }) };
}

/** Throws INTERNAL if the record can't be decrypted. */
export function openSecrets(id: string, record: InstanceSecretsRecord, vault: Vault): InstanceSecrets {
  if (record.key === undefined) return InstanceSecrets.fromPartial({});
  return InstanceSecrets.decode(vault.openBytes(record.key, secretsKey(id)));
}
