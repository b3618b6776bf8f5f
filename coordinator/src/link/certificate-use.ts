import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../model/codec.ts";
import { nodeKey } from "../model/keys.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";

export interface CertificateUseOptions {
  readonly store: Store;
  readonly state: ClusterView;
}

/** Other writes to the record come from operators and from the node's own renewal. */
const MAX_TRIES = 5;

/**
 * Records that a node has connected since it joined, and which authority issued the certificate that it used. The record changes
 * once after each join and each change of the authority. A node that was only sent a new certificate may have lost the answer,
 * and connects with the old one.
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
      [{ kind: "modRevision", key, revision: entry.revision }],
      [{ kind: "put", key, value: encodeRecord(NodeRecord, record) }],
    );
    await state.reached(result.revision);
    if (result.succeeded) return;
  }
}

/** Returns the record after the use of a certificate; undefined: it doesn't change. */
function used(record: NodeRecord, serial: string | undefined): NodeRecord | undefined {
  const { serials, certificateAuthority, connectedAuthority, hasConnected } = record;
  if (serial === undefined || !serials.includes(serial)) return undefined;
  const authority = serial === serials[0] ? certificateAuthority : connectedAuthority;
  if (hasConnected && authority === connectedAuthority) return undefined;
  return { ...record, hasConnected: true, connectedAuthority: authority };
}
