import { SYSTEM_DISK } from "../../src/store/level/disk.ts";
import { CrashDisk } from "./crash-disk.ts";
import { testDisk } from "./disk-contract.ts";
import { MemoryLocks } from "./memory-locks.ts";

testDisk("the system's disk", () => SYSTEM_DISK);
testDisk("a disk that may crash", () => new CrashDisk(new MemoryLocks()));
