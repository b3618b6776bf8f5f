import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../model/codec.ts";
import { nodeKey } from "../model/keys.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";

export interface CertificateUseOptions {
  readonly store: Store;
  readonly state: ClusterView;
}

/** The limit of attempts. Operators and the node's own renewal may write the record at the same time. */
const MAX_TRIES = 5;

/**
 * Records that a node has connected since it joined, and which authority issued the certificate that it used. The record
 * changes once after each join and each change of the authority. A node that was sent a new certificate may not have
 * received it, and still connects with the old one.
 */
export async function noteCertificateUse(
  node: string,
  serial: string | undefined,
  { store, state }: CertificateUseOptions,
): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const entry = state.node(node);
    if (entry === undefined) return;
    const record = used(entry.record, serial);
    if (record === undefined) return;
    const key = nodeKey(node);
    const result = await store.txn(
      [{ type: "mod-revision", key, revision: entry.revision }],
      [{ type: "put", key, value: encodeRecord(NodeRecord, record) }],
    );
    await state.reached(result.revision);
    if (result.succeeded) return;
  }
}

/** Returns the record after the use of a certificate. Undefined: it doesn't change. */
function used(record: NodeRecord, serial: string | undefined): NodeRecord | undefined {
  const { serials, certificateAuthority, connectedAuthority, hasConnected } = record;
  if (serial === undefined || !serials.includes(serial)) return undefined;
  const authority = serial === serials[0] ? certificateAuthority : connectedAuthority;
  if (hasConnected && authority === connectedAuthority) return undefined;
  return { ...record, hasConnected: true, connectedAuthority: authority };
}
