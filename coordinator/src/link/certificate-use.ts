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
 * Records which authority issued the certificate that a node has connected with. The record changes once after each change of the
 * authority. A node that was only sent a new certificate may have lost the answer, and connects with the old one.
 */
export async function noteCertificateUse(
  node: string,
  serial: string | undefined,
  { store, state }: CertificateUseOptions,
): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const entry = state.node(node);
    if (entry === undefined) return;
    const { serials, certificateAuthority, connectedAuthority } = entry.record;
    if (serial === undefined || serial !== serials[0] || certificateAuthority === connectedAuthority) return;
    const record: NodeRecord = { ...entry.record, connectedAuthority: certificateAuthority };
    const key = nodeKey(node);
    const result = await store.txn(
      [{ kind: "modRevision", key, revision: entry.revision }],
      [{ kind: "put", key, value: encodeRecord(NodeRecord, record) }],
    );
    await state.reached(result.revision);
    if (result.succeeded) return;
  }
}
