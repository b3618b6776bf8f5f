import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { WorkspacePhase, type WorkspaceStatus } from "@forage/proto/core";
import { run } from "../lib/run.ts";
import type { TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import {
  type Daemon,
  type System,
  type SystemOptions,
  startSystem,
  waitForNode,
  waitForReady,
} from "./system.ts";
import { WorkspaceCalls } from "./workspaces.ts";

/** An interval short enough to notice a stage of some hundred milliseconds. */
const WATCH_MS = 4;
const STAGE_LIMIT_MS = 60_000;
const DISK_MEBIBYTES = 512;
const FILL_BLOCK_BYTES = 64 * 1024;

/** A workspace with this file in its content does not end before the file is deleted, or its grace period is over. */
const HOLD_FILE = ".hold";
const ON_TERM = `while test -e ${HOLD_FILE}; do sleep 0.1; done; exit 0`;

/** Files of every kind that an archive must keep, as a script for bash. */
const GROW = `
  mkdir -p tree/a tree/b 'tree/with space'
  head -c 24M /dev/urandom > large
  head -c 2M /dev/urandom | split -a 3 -b 8k - tree/a/f
  ln tree/a/faaa tree/b/hard
  ln -s ../a/faaa tree/b/soft
  ln -s /nonexistent tree/b/dangling
  mkfifo tree/b/pipe
  : > 'tree/with space/-empty'
  truncate -s 16M tree/sparse
  chown -R 33333:33333 .
  chown 1234:4321 tree/a/faac
  chmod 4751 tree/a/faab
  chmod 0 tree/a/faad
  touch -d @1234567890.123456789 tree/a/faae
`;

/**
 * A script that prints names, kinds, modes, owners, times, links and contents, except the files that each start writes.
 */
const DIGEST = `
  find . -mindepth 1 -path ./.gitpod -prune -o -type d -printf '%P d %m %U %G %T@\\n' -o -printf '%P %y %m %U %G %s %T@ %n %l\\n' | sort
  find . -path ./.gitpod -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
`;

/** A file system so small that a test can fill it. */
export class SmallDisk {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async mount(directory: string): Promise<SmallDisk> {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const image = `${directory}.img`;
    await run("truncate", ["-s", `${DISK_MEBIBYTES}M`, image]);
    // No blocks are reserved for root, because the agent is root.
    await run("mkfs.ext4", ["-q", "-m", "0", image]);
    await run("mount", ["-o", "loop", image, directory]);
    mkdirSync(besides(directory));
    await run("mount", ["--bind", directory, besides(directory)]);
    return new SmallDisk(directory);
  }

  /**
   * Makes the disk writable or read-only for the programs. The test itself can always fill it. Files that are open for
   * writing keep it writable for a moment.
   */
  async writable(yes: boolean): Promise<void> {
    const remount = () =>
      run("mount", ["-o", `remount,bind,${yes ? "rw" : "ro"}`, this.directory], { allowFailure: true });
    await waitFor(async () => (await remount()).exitCode === 0, {
      what: `${this.directory} is mounted again`,
      limitMs: STAGE_LIMIT_MS,
    });
  }

  /** Fills the disk until `leftBytes` are free. */
  fill(leftBytes = 0): void {
    const { bavail, bsize } = statfsSync(this.directory);
    const file = openSync(this.#filler, "a");
    try {
      for (let bytes = bavail * bsize - leftBytes; bytes > 0; bytes -= FILL_BLOCK_BYTES)
        writeSync(file, Buffer.alloc(Math.min(bytes, FILL_BLOCK_BYTES)));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(this.#filler, { force: true });
  }

  get #filler(): string {
    return join(besides(this.directory), ".filler");
  }
}

/** Returns a second directory on the same disk, which stays writable. */
function besides(directory: string): string {
  return `${directory}.writable`;
}

/** A coordinator and an agent with workspaces whose content and archives are on small disks, with faults for them. */
export class WorkspaceScene {
  readonly system: System;
  readonly calls: WorkspaceCalls;
  readonly nodeDisk: SmallDisk;
  readonly storeDisk: SmallDisk;

  private constructor(system: System, nodeDisk: SmallDisk, storeDisk: SmallDisk) {
    this.system = system;
    this.calls = new WorkspaceCalls(system);
    this.nodeDisk = nodeDisk;
    this.storeDisk = storeDisk;
  }

  static async start(
    host: TestHost,
    environment: NonNullable<SystemOptions["environment"]> = {},
  ): Promise<WorkspaceScene> {
    const nodeDisk = await SmallDisk.mount(join(host.dir, "agent", "workspaces"));
    const storeDisk = await SmallDisk.mount(join(host.dir, "content"));
    const system = await startSystem(host, {
      environment,
      agent: { workspaces: { enabled: true } },
      coordinator: {
        workspaces: {
          enabled: true,
          host: "example.test",
          content: { directory: storeDisk.directory, reserveGigabytes: 0 },
          classes: [{ id: "small", cpu: "10m", memory: "32Mi" }],
          command: ["sh", "-c", `trap "${ON_TERM}" TERM; while :; do sleep 1000 & wait $!; done`],
        },
      },
    });
    return new WorkspaceScene(system, nodeDisk, storeDisk);
  }

  close(): void {
    this.calls.close();
  }

  /**
   * Returns the name of an instance of a workspace. It differs between scenes, so none of them kills programs of
   * another.
   */
  instance(workspace: string, number: number): string {
    return `${workspace}${this.system.host.name}-${number}`;
  }

  /** Starts the instance of the workspace in its name. */
  async begin(instance: string, annotations: Record<string, string> = {}): Promise<void> {
    const [metaId = ""] = instance.split("-");
    await this.calls.start(instance, { metadata: { metaId, annotations } });
  }

  async run(instance: string): Promise<WorkspaceStatus> {
    await this.begin(instance);
    return this.calls.reaches(instance, WorkspacePhase.RUNNING);
  }

  /** Waits until the instance's status meets the condition. */
  async becomes(instance: string, what: string, holds: (status: WorkspaceStatus) => boolean): Promise<void> {
    let last: WorkspaceStatus | undefined;
    await waitFor(
      async () => {
        last = await this.calls.describe(instance);
        return last !== undefined && holds(last);
      },
      { what, limitMs: STAGE_LIMIT_MS, everyMs: WATCH_MS, explain: () => this.#explain(last) },
    );
  }

  pathOf(instance: string, ...path: readonly string[]): string {
    return join(this.nodeDisk.directory, instance, ...path);
  }

  contentOf(instance: string): string {
    return this.pathOf(instance, "volume", "content");
  }

  /** Keeps the instance in STOPPING after its stop until it is released or its grace period is over. */
  hold(instance: string): void {
    writeFileSync(join(this.contentOf(instance), HOLD_FILE), "");
  }

  letGo(instance: string): void {
    rmSync(join(this.contentOf(instance), HOLD_FILE));
  }

  grow(instance: string): Promise<void> {
    return this.#bash(GROW, this.contentOf(instance)).then(() => undefined);
  }

  /** Returns a digest of names, contents, owners, modes, times and links. */
  digest(directory: string): Promise<string> {
    return this.#bash(`{ ${DIGEST} } | sha256sum`, directory);
  }

  /** Kills a program when the stage is reached, and restarts it. */
  async killAt(daemon: Daemon, what: string, reached: () => boolean | Promise<boolean>): Promise<void> {
    await this.#stage(what, reached);
    await this.restart(daemon);
  }

  /** Kills one program that works in the directory of an instance. */
  async killProgram(name: string, option: string, instance: string): Promise<void> {
    await this.#stage(`${name} ${option} runs for ${instance}`, () => {
      const pid = programIn(this.pathOf(instance), name, option);
      if (pid === undefined) return false;
      try {
        process.kill(pid, "SIGKILL");
        return true;
      } catch {
        return false;
      }
    });
  }

  async restart(daemon: Daemon): Promise<void> {
    await daemon.kill();
    daemon.start();
    const { coordinator, http } = this.system;
    if (daemon === coordinator) await waitForReady(http, coordinator);
  }

  ready(): Promise<void> {
    return waitForNode(this.system);
  }

  exists(instance: string, ...path: readonly string[]): boolean {
    return existsSync(this.pathOf(instance, ...path));
  }

  /** Returns the names of the archives that the node has made of an instance and not stored yet. */
  archivesOf(instance: string): readonly string[] {
    return this.exists(instance, "archives") ? readdirSync(this.pathOf(instance, "archives")) : [];
  }

  /**
   * Waits until the node has deleted the files of instances that have stopped. A node that was away deletes them when
   * it is back.
   */
  async filesDeleted(...instances: readonly string[]): Promise<void> {
    const discarded = join(this.nodeDisk.directory, ".discarded");
    const areGone = (): boolean =>
      !instances.some((instance) => this.exists(instance)) &&
      (!existsSync(discarded) || readdirSync(discarded).length === 0);
    await waitFor(areGone, {
      ...{ what: "the files of stopped instances are deleted", limitMs: STAGE_LIMIT_MS },
      explain: () => this.#explain(undefined),
    });
  }

  async #stage(what: string, reached: () => boolean | Promise<boolean>): Promise<void> {
    const explain = (): string => this.#explain(undefined);
    await waitFor(reached, { what, limitMs: STAGE_LIMIT_MS, everyMs: WATCH_MS, explain });
  }

  async #bash(script: string, directory: string): Promise<string> {
    const { stdout } = await run("bash", ["-c", `set -euo pipefail; cd "$1"; ${script}`, "bash", directory]);
    return stdout;
  }

  #explain(status: WorkspaceStatus | undefined): string {
    const text = JSON.stringify(status, (_, it) => (typeof it === "bigint" ? String(it) : it));
    return `${text}\n${readFileSync(this.system.agent.logPath, "utf8").slice(-3_000)}`;
  }
}

/** Finds a program by its name and an option, and by a directory below one of its own mounts. */
function programIn(directory: string, name: string, option: string): number | undefined {
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const [program, ...args] = readFileSync(`/proc/${entry}/cmdline`, "latin1").split("\0");
      if (program !== name || !args.includes(option)) continue;
      if (readFileSync(`/proc/${entry}/mountinfo`, "latin1").includes(mountedPath(directory)))
        return Number(entry);
    } catch {
      // The process has ended meanwhile.
    }
  }
  return undefined;
}

/** Returns the path within its file system that a bind mount reports. */
function mountedPath(directory: string): string {
  return ` /${directory.split("/").at(-1)}/volume/`;
}
