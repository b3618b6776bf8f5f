export type { Clock } from "./clock.ts";
export type { DurableStore } from "./durable-store.ts";
export { connectToEtcd, type EtcdConnection } from "./etcd/connect.ts";
export { type FollowedStore, followEtcdStore } from "./etcd/etcd-follower.ts";
export { type EtcdStore, type EtcdStoreOptions, openEtcdStore, restoreEtcdStore } from "./etcd/etcd-store.ts";
export type { Leader } from "./etcd/leadership.ts";
export { DEFAULT_TRUST_TOKENS_SECONDS, ETCD_SCHEMA, type EtcdSettings } from "./etcd/settings.ts";
export { type BackupInfo, checkBackup } from "./format/backup.ts";
export type { RestoreResult } from "./format/restored.ts";
export { type LevelStore, type LevelStoreOptions, openLevelStore } from "./level/level-store.ts";
export { type RestoreOptions, restoreLevelStore } from "./level/restore.ts";
export { type SalvageReport, salvageLevelStore } from "./level/salvage.ts";
export { createMemoryStore, type MemoryStoreOptions } from "./memory/memory-store.ts";
export type {
  Compare,
  Lease,
  LeaseId,
  Op,
  RangeOptions,
  RangeResult,
  ReadOptions,
  Revision,
  Store,
  StoredRecord,
  StoreHealth,
  TxnResult,
  WatchBatch,
  WatchEvent,
} from "./store.ts";
export { StoreError, type StoreErrorCode } from "./store-error.ts";
