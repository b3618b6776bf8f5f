import { TransferKind, type WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";

/** Returns the present orders of nodes, which decide the objects that a node may write and read. */
export interface OrderSource {
  /** Returns the order of one workspace if its pod is assigned to the node, else undefined. */
  orderOf(node: string, instanceId: string): WorkspaceOrder | undefined;
}

/** Reports whether the order lets the transfer write the object. */
export function mayUpload(order: WorkspaceOrder, transferId: string, object: string): boolean {
  return order.transfers.some((transfer) => transfer.id === transferId && transfer.object === object);
}

/** Reports whether the transfer's archive goes to a download instead of the store. */
export function isExport(order: WorkspaceOrder, transferId: string): boolean {
  return order.transfers.some(({ id, kind }) => id === transferId && kind === TransferKind.EXPORT);
}

/** Reports whether the order names the object as content to restore. */
export function mayDownload(order: WorkspaceOrder, object: string): boolean {
  if (order.restore?.object === object) return true;
  return Object.values(order.archives).some((archive) => archive.object === object);
}
