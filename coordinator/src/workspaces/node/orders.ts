import type { Log } from "@forage/common/log";
import type { WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { Vault } from "../../objects/vault.ts";
import type { OrderSource } from "../content/order-source.ts";
import { openSecrets } from "../records.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { WorkspaceView } from "../view.ts";
import { orderOf } from "./order.ts";

export interface OrdersOptions {
  readonly view: WorkspaceView;
  readonly vault: Vault;
  readonly settings: WorkspaceSettings;
  readonly epoch: number;
  readonly log: Log;
}

/**
 * The shift of the store's epoch in a version, as for `status_version`: versions after a restore
 * are greater than all before it.
 */
const EPOCH_BITS = 40n;

/** Returns the version of the order that results from the record at this revision. */
export function orderVersion(epoch: number, revision: number): bigint {
  return (BigInt(epoch) << EPOCH_BITS) + BigInt(revision);
}

/** Computes the orders for nodes from the records of the instances whose content they hold. */
export class NodeOrders implements OrderSource {
  readonly #options: OrdersOptions;

  constructor(options: OrdersOptions) {
    this.#options = options;
  }

  orderOf(node: string, instanceId: string): WorkspaceOrder | undefined {
    const { view, vault, settings, epoch, log } = this.#options;
    const entry = view.instance(instanceId);
    if (entry === undefined || entry.record.node !== node) return undefined;
    const sealed = view.secrets(instanceId);
    try {
      const secrets = sealed === undefined ? undefined : openSecrets(instanceId, sealed, vault);
      const order = orderOf(entry.record, secrets, settings);
      return { ...order, version: orderVersion(epoch, entry.revision) };
    } catch (err) {
      log.error({ event: "workspace-secrets-unreadable", workspace: instanceId, err });
      return undefined;
    }
  }
}
