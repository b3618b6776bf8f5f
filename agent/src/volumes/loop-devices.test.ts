import assert from "node:assert/strict";
import { test } from "node:test";
import { detachLoopDevice } from "./loop-devices.ts";
import { ChildRunner } from "./run-child.ts";

const signal = AbortSignal.timeout(60_000);

test("accepts a failure of losetup if the device is already detached", async () => {
  const children = new FailingChildRunner();
  await detachLoopDevice({ device: "/dev/loop4000", file: "/volumes/disk.img" }, children, signal);
  assert.deepEqual(children.calls, [["losetup", "--detach", "/dev/loop4000"]]);
});

test("reports a failure of losetup if the device still has its file", async () => {
  const device = { device: "/dev/loop4000", file: "/volumes/disk.img" };
  const detached = detachLoopDevice(device, new FailingChildRunner(), signal, async () => device.file);
  await assert.rejects(detached, /losetup: \/dev\/loop4000: detach failed/);
});

class FailingChildRunner extends ChildRunner {
  readonly calls: string[][] = [];

  override async run(file: string, args: readonly string[]) {
    this.calls.push([file, ...args]);
    return { exitCode: 1, stdout: "", stderr: "/dev/loop4000: detach failed" };
  }
}
