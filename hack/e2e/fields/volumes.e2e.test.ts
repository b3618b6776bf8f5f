import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { type Json, type LabPod, type PodLab, shell, startPodLab } from "../../system/pod-lab.ts";

const LIMIT = { timeout: 180_000 };

const mount = (name: string, mount_path: string, more: Json = {}): Json => ({ name, mount_path, ...more });
const pod = (volumes: readonly Json[], mounts: readonly Json[], script: string, more: Json = {}): Json => ({
  container: { ...shell(script), volume_mounts: mounts },
  volumes,
  ...more,
});
const hostPath = (path: string, type = ""): Json => ({ name: "v", host_path: { path, type } });

function services(dir: string): Readonly<Record<string, Json>> {
  const on = (path: string, type: string, script: string) =>
    pod([hostPath(`${dir}/${path}`, type)], [mount("v", "/v")], script);
  return {
    scratch: {
      ...pod(
        [{ name: "v", empty_dir: {} }],
        [mount("v", "/v")],
        "echo main > /v/main; cat /v/init; stat -c %a /v",
      ),
      init_containers: [{ command: ["sh", "-c", "echo init > /v/init"], volume_mounts: [mount("v", "/v")] }],
    },
    limited: pod(
      [{ name: "v", empty_dir: { size_limit: "8Mi" } }],
      [mount("v", "/v")],
      "dd if=/dev/zero of=/v/big bs=1M count=20 2>&1; rm /v/big; echo again > /v/small && cat /v/small",
    ),
    memory: pod(
      [{ name: "v", empty_dir: { medium: "Memory", size_limit: "4Mi" } }],
      [mount("v", "/v")],
      "stat -f -c %T /v; dd if=/dev/zero of=/v/big bs=1M count=20 2>&1; stat -c %s /v/big",
    ),
    parts: pod(
      [{ name: "v", empty_dir: {} }],
      [
        mount("v", "/whole"),
        mount("v", "/part", { sub_path: "a/b" }),
        mount("v", "/ro", { read_only: true }),
      ],
      "echo deep > /part/file; cat /whole/a/b/file; cat /ro/a/b/file; touch /ro/x 2>&1",
    ),
    escape: pod([hostPath(`${dir}/links`)], [mount("v", "/v", { sub_path: "out" })], "ls /v"),
    made: on("made/dir", "DirectoryOrCreate", "echo from-pod > /v/x"),
    there: on("there", "Directory", "cat /v/hello"),
    file: on("there/hello", "File", "cat /v"),
    "made-file": on("made/file", "FileOrCreate", "echo into > /v"),
    socket: on("socket", "Socket", "test -S /v && echo socket"),
    char: pod([hostPath("/dev/null", "CharDevice")], [mount("v", "/v")], "test -c /v && echo device"),
    unchecked: on("there", "", "cat /v/hello"),
    "no-directory": on("missing", "Directory", "true"),
    "not-a-file": on("there", "File", "true"),
    "not-a-block-device": pod([hostPath("/dev/null", "BlockDevice")], [mount("v", "/v")], "true"),
    "no-nfs": pod(
      [{ name: "v", nfs: { server: "127.0.0.1", path: "/no-such-export", read_only: true } }],
      [mount("v", "/v")],
      "true",
    ),
  };
}

describe("volumes on a real host", { concurrency: false }, () => {
  let lab: PodLab;
  let dir = "";
  const socket = createServer();
  before(async () => {
    lab = await startPodLab();
    dir = `${lab.host.dir}/paths`;
    mkdirSync(`${dir}/there`, { recursive: true });
    mkdirSync(`${dir}/links`);
    writeFileSync(`${dir}/there/hello`, "hello\n");
    symlinkSync("/etc", `${dir}/links/out`);
    await new Promise<void>((resolve) => socket.listen(`${dir}/socket`, resolve));
    await lab.apply(services(dir));
  }, LIMIT);
  after(async () => {
    socket.close();
    await lab?.close();
  }, LIMIT);

  async function trouble(service: string): Promise<string> {
    const found = await lab.until(service, "says what is wrong", (it) => troubleOf(it) !== "");
    return troubleOf(found);
  }

  test("volumes.empty_dir: shared by all containers of a pod, writable by everyone", LIMIT, async () => {
    assert.equal(await lab.output("scratch"), "init\n777\n");
  });

  test("volumes.empty_dir.size_limit: writes beyond it fail, and the pod continues", LIMIT, async () => {
    assert.match(await lab.output("limited"), /No space left on device[\s\S]*again\n$/);
  });

  test("volumes.empty_dir.medium: Memory is a tmpfs with its size", LIMIT, async () => {
    const text = await lab.output("memory");
    assert.match(text, /^tmpfs\n/);
    assert.match(text, /No space left on device/);
    assert.match(text, new RegExp(`\\n${4 * 1024 ** 2}\\n$`));
  });

  test(
    "volume_mounts.sub_path and read_only: mount a part of a volume, and forbid writing",
    LIMIT,
    async () => {
      assert.match(await lab.output("parts"), /^deep\ndeep\n.*Read-only file system\n$/);
    },
  );

  test("volume_mounts.sub_path: a link out of the volume is refused", LIMIT, async () => {
    assert.match(await trouble("escape"), /out|leaves|outside/);
  });

  test("volumes.host_path: every type is created or checked", LIMIT, async () => {
    assert.equal(await lab.output("there"), "hello\n");
    assert.equal(await lab.output("file"), "hello\n");
    assert.equal(await lab.output("unchecked"), "hello\n");
    assert.equal(await lab.output("socket"), "socket\n");
    assert.equal(await lab.output("char"), "device\n");
    await lab.output("made");
    assert.equal(readFileSync(`${dir}/made/dir/x`, "utf8"), "from-pod\n");
    await lab.output("made-file");
    assert.equal(readFileSync(`${dir}/made/file`, "utf8"), "into\n");
  });

  test("volumes.host_path: a missing path or one of another type is reported", LIMIT, async () => {
    assert.match(await trouble("no-directory"), /missing/);
    assert.match(await trouble("not-a-file"), /there.*(file|directory)/i);
    assert.match(await trouble("not-a-block-device"), /\/dev\/null.*block/i);
    assert.equal(existsSync(`${dir}/missing`), false);
  });

  test(
    "volumes.nfs: a server that can't be reached delays only its own pod, and the status reports that",
    LIMIT,
    async () => {
      assert.match(await trouble("no-nfs"), /nfs|127\.0\.0\.1/i);
      await lab.ready("scratch");
    },
  );
});

function troubleOf({ status }: LabPod): string {
  const waiting = status?.containers?.map((container) => container.waiting?.message ?? "") ?? [];
  return [status?.message ?? "", ...waiting].filter((text) => text !== "").join("; ");
}
