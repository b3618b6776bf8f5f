import { SYSTEM_DISK } from "../../src/store/level/disk.ts";
import { testDirectoryLock } from "./directory-lock-contract.ts";
import { MemoryLocks } from "./memory-locks.ts";

testDirectoryLock("the system's disk", () => (dir) => SYSTEM_DISK.lock(dir));

testDirectoryLock("locks in memory", () => {
  const locks = new MemoryLocks();
  return (dir) => locks.acquire(dir);
});
