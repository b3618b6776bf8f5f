import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MonotonicClock } from "@forage/common/clock";
import { type DirectoryLock, lockDirectory } from "@forage/identity/directory-lock";
import { StoreError } from "../store-error.ts";
import type { Etcd } from "./etcd.ts";
import { EtcdClient } from "./etcd-client.ts";
import type { Leader } from "./leadership.ts";
import { prefixed } from "./prefixed.ts";
import { type EtcdSettings, etcdEndpoints } from "./settings.ts";

/** A connection to the store in etcd for one process, which holds the lock of its data directory. */
export interface EtcdConnection {
  readonly etcd: Etcd;
  readonly self: Leader;
  readonly callClock: MonotonicClock;
  readonly nowMs: () => number;
  /** Releases the lock of the data directory. */
  readonly onClosed: () => void;
}

export interface ConnectOptions {
  readonly settings: EtcdSettings;
  /** The directory that holds the coordinator's id in etcd. It is created if it does not exist. */
  readonly dir: string;
  /** The name of the host, for messages. */
  readonly hostName: string;
  /** The addresses (HOST:PORT) at which other coordinators reach this one. */
  readonly addresses?: readonly string[] | undefined;
  readonly clock: MonotonicClock;
  /** The wall clock in milliseconds, which grpc-js uses for deadlines. */
  readonly nowMs: () => number;
}

/**
 * Connects as the coordinator of the directory. @throws StoreError LOCKED if another process is connected as the same
 * coordinator.
 */
export async function connectToEtcd(options: ConnectOptions): Promise<EtcdConnection> {
  const { settings, dir, hostName, addresses, clock, nowMs } = options;
  const endpoints = etcdEndpoints(settings);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const lock = await acquireLock(dir);
  return {
    etcd: prefixed(new EtcdClient({ endpoints, nowMs }), settings.prefix),
    self: { holder: holderOf(dir), name: hostName, addresses },
    callClock: clock,
    nowMs,
    onClosed: () => lock.release(),
  };
}

async function acquireLock(dir: string): Promise<DirectoryLock> {
  const lock = await lockDirectory(dir).catch((cause: unknown) => {
    throw new StoreError("IO_ERROR", `the directory ${dir} can't be locked`, { cause });
  });
  if (lock !== undefined) return lock;
  throw new StoreError(
    "LOCKED",
    `another process uses ${dir}: stop the coordinator, or wait until the other task has ended`,
  );
}

/**
 * Returns the coordinator's random id. It stays the same over restarts, so that a restarted coordinator needn't wait for
 * the expiry of its own lease.
 */
function holderOf(dir: string): string {
  const path = join(dir, "coordinator-id");
  try {
    writeFileSync(path, `${randomUUID()}\n`, { flag: "wx", mode: 0o600 });
  } catch (error) {
    const exists = error instanceof Error && "code" in error && error.code === "EEXIST";
    if (!exists) throw StoreError.from(error);
  }
  const id = readFileSync(path, "utf8").trim();
  if (/^[0-9a-f-]{36}$/.test(id)) return id;
  throw new StoreError(
    "CORRUPT",
    `${path} contains no valid id: remove the file, so that the coordinator creates a new id`,
  );
}
