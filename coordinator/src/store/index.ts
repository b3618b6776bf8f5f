export type { Clock } from "./clock.ts";
export type { BackupInfo } from "./level/backup.ts";
export { type LevelStore, type LevelStoreOptions, openLevelStore } from "./level/level-store.ts";
export { type RestoreOptions, type RestoreResult, restoreLevelStore } from "./level/restore.ts";
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
