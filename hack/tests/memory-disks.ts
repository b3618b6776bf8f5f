import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { listMounts } from "../lib/mounts.ts";
import { run } from "../lib/run.ts";
import { TEST_HOSTS } from "../lib/test-host-remains.ts";

/** The directories for the files of tests, and the memory that they may use a part of. */
export interface TestPlaces {
  /** The directory of temporary files, in which the memory disk of each run has a directory of its own. */
  readonly temporary: string;
  /** The directory of test hosts, which runs share. */
  readonly hosts: string;
  /** The memory that is available on this machine. */
  readonly availableBytes: number;
}

const GIB = 1024 ** 3;
/** Tests need 1.1 GiB on both disks together. With less memory, the files would displace the programs of the tests. */
const LEAST_AVAILABLE_BYTES = 8 * GIB;
/** Each disk's part of the available memory, at most. */
const SHARE = 1 / 4;
/** The directories of runs. The names are short because sockets below have paths of at most 107 bytes. */
const DIRECTORY = /^ft-(\d+)$/;

/** Returns the places that tests use on this machine. The paths contain no links, like those in the table of mounts. */
export function thisMachine(): TestPlaces {
  mkdirSync(TEST_HOSTS, { recursive: true });
  const [, kib = "0"] = /^MemAvailable: +(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8")) ?? [];
  const [temporary, hosts] = [realpathSync(tmpdir()), realpathSync(TEST_HOSTS)];
  return { temporary, hosts, availableBytes: Number(kib) * 1024 };
}

/**
 * Runs tests with their temporary files and test hosts on memory disks, if there is memory for them. Tests make and
 * delete hundreds of thousands of files, for which a file system on a disk needs 5 to 10 % of the processor time. The
 * disks are removed afterwards; those of a run that was killed are removed by the next one. Needs root.
 */
export async function onMemoryDisks<T>(
  { temporary, hosts, availableBytes }: TestPlaces,
  report: (detail: string) => void,
  tests: () => Promise<T>,
): Promise<T> {
  await removeDisksOfTheDead(temporary);
  if (availableBytes < LEAST_AVAILABLE_BYTES) {
    report(
      `the tests' files are on the disk: memory disks need ${LEAST_AVAILABLE_BYTES / GIB} GiB of available memory`,
    );
    return tests();
  }
  const size = Math.floor(availableBytes * SHARE);
  const own = join(temporary, `ft-${process.pid}`);
  const before = process.env.TMPDIR;
  try {
    if (await mount(own, `size=${size},mode=1777`, report)) process.env.TMPDIR = own;
    // A mount hides its directory's content, and the markers of hosts that a killed test has left must stay visible.
    if (!listMounts().includes(hosts) && isEmpty(hosts)) await mount(hosts, `size=${size},mode=0755`, report);
    return await tests();
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    await removeDisk(own);
    // It is busy while another run uses it.
    if (listMounts().includes(hosts) && isEmpty(hosts))
      await run("umount", ["--", hosts], { allowFailure: true });
  }
}

/** Returns whether the disk is mounted. A container may lack the right to mount. */
async function mount(place: string, options: string, report: (detail: string) => void): Promise<boolean> {
  mkdirSync(place, { recursive: true });
  const argv = ["-t", "tmpfs", "-o", options, "forage-test", place];
  const { exitCode, stderr } = await run("mount", argv, { allowFailure: true });
  if (exitCode !== 0) report(`the tests' files are on the disk: ${stderr.trim()}`);
  return exitCode === 0;
}

async function removeDisk(place: string): Promise<void> {
  if (listMounts().includes(place)) await run("umount", ["--lazy", "--", place]);
  if (existsSync(place)) rmdirSync(place);
}

async function removeDisksOfTheDead(temporary: string): Promise<void> {
  for (const place of listMounts().filter((path) => dirname(path) === temporary)) {
    const [, pid] = DIRECTORY.exec(basename(place)) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await removeDisk(place);
  }
}

function isEmpty(dir: string): boolean {
  return !existsSync(dir) || readdirSync(dir).length === 0;
}
