import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync, readSync, writeSync } from "node:fs";

// Replaces mount.nfs: `hanging-server.ts SOURCE TARGET -o OPTIONS` mounts a file system whose server ends right after
// its greeting, like a disconnected one. Every request to it hangs.

const FUSE_INIT = 26;
const HEADER_BYTES = 16;
const INIT_ANSWER_BYTES = 64;

if (process.argv[2] === "--serve") serve(3);
else mount(process.argv[3] ?? "");

function mount(target: string): void {
  const device = openSync("/dev/fuse", "r+");
  const options = "fd=3,rootmode=40000,user_id=0,group_id=0";
  const args = ["-i", "-t", "fuse", "-o", options, "--", "hanging-server", target];
  const stdio = ["ignore", "inherit", "inherit", device] as const;
  const { status } = spawnSync("mount", args, { stdio: [...stdio] });
  if (status === 0) {
    spawn(process.execPath, [import.meta.filename, "--serve"], {
      detached: true,
      stdio: ["ignore", "ignore", "ignore", device],
    }).unref();
  }
  closeSync(device);
  process.exitCode = status ?? 1;
}

function serve(device: number): void {
  const request = Buffer.alloc(256 * 1024);
  for (;;) {
    let length: number;
    try {
      length = readSync(device, request);
    } catch {
      // The file system was unmounted.
      return;
    }
    if (length < 40 || request.readUInt32LE(4) !== FUSE_INIT) continue;
    const answer = Buffer.alloc(HEADER_BYTES + INIT_ANSWER_BYTES);
    answer.writeUInt32LE(answer.byteLength, 0);
    request.copy(answer, 8, 8, 16);
    // Protocol version 7.31, and the largest write.
    answer.writeUInt32LE(7, HEADER_BYTES);
    answer.writeUInt32LE(31, HEADER_BYTES + 4);
    answer.writeUInt32LE(4096, HEADER_BYTES + 20);
    writeSync(device, answer);
  }
}
