import { randomInt } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { buildBusyboxImage } from "./busybox-image.ts";
import { type Containerd, startContainerd } from "./containerd.ts";
import { loadImage as loadImageArchive } from "./load-image.ts";
import { ensureNerdctl } from "./nerdctl.ts";
import { findNetworkRemains, type NetworkRemains } from "./network-remains.ts";
import { type Registry, type StartRegistryOptions, startRegistry } from "./registry.ts";
import { retryListing } from "./retry-listing.ts";
import { type RunOptions, type RunResult, run } from "./run.ts";
import { type Program, type SpawnOptions, spawnProgram } from "./spawn-program.ts";
import {
  claimTestHost,
  rememberProcess,
  removeStaleTestHosts,
  removeTestHost,
  TEST_HOSTS,
} from "./test-host-remains.ts";

/** A host for one test, with its own containerd, directory and names. It leaves nothing behind. */
export interface TestHost {
  /**
   * A name that is unique on this machine, `[a-z][a-z0-9]{7}`; the agent's `instance`. Everything with this name is
   * removed at the end.
   */
  readonly name: string;
  /** The directory of the test. It has a short path, and is empty except for the files named here. */
  readonly dir: string;
  readonly containerd: Containerd;
  /** containerd's namespace for this host's containers. It includes the host's name. */
  readonly namespace: string;
  readonly nerdctlPath: string;
  /** The options to put before every nerdctl command. */
  readonly nerdctlOptions: readonly string[];
  /** The reference of a loaded busybox image, always the same. */
  readonly image: string;
  /** Runs nerdctl. A listing (`ps`) during which a container is removed is repeated. */
  nerdctl(args: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Starts a program that is ended with the host, also if this process dies. Its output is in `<dir>/<name>.log`. */
  spawn(name: string, file: string, args: readonly string[], options?: SpawnOptions): Program;
  /** Starts a registry on loopback that ends with the host. */
  startRegistry(options?: Pick<StartRegistryOptions, "port" | "dir" | "users">): Promise<Registry>;
  /** Builds and loads an image of busybox with additional files. */
  loadImage(image: Parameters<typeof buildBusyboxImage>[0]): Promise<string>;
  /**
   * Returns the objects of this host's instance in the kernel and in CNI's directories. Empty when the deletion is
   * complete.
   */
  networkRemains(): Promise<NetworkRemains>;
  close(): Promise<void>;
}

/** The part of node:test's context that `withHost` uses. */
export interface TestContext {
  after(hook: () => Promise<void>): void;
  readonly signal?: AbortSignal;
}

const IMAGE = "localhost/forage/busybox:1";
const CNI_BIN_DIR = "/usr/lib/cni";

/** Returns a host that exists during the test `t`. Needs root. */
export async function withHost(t: TestContext): Promise<TestHost> {
  const host = await startTestHost(t.signal);
  t.after(() => host.close());
  return host;
}

/** Does the same as `withHost` for suites that close the host themselves in `after`. */
export async function startTestHost(signal?: AbortSignal): Promise<TestHost> {
  await removeStaleTestHosts();
  const name = `t${Array.from({ length: 7 }, () => randomInt(36).toString(36)).join("")}`;
  const dir = join(TEST_HOSTS, name);
  claimTestHost(name);
  mkdirSync(dir, { recursive: true });
  try {
    return await build(name, dir, signal);
  } catch (error) {
    await removeTestHost(name);
    throw error;
  }
}

async function build(name: string, dir: string, signal: AbortSignal | undefined): Promise<TestHost> {
  const nerdctlPath = await ensureNerdctl(signal ? { signal } : {});
  const containerd = await startContainerd({ dir: join(dir, "c"), ...(signal && { signal }) });
  const namespace = `forage-${name}`;
  const nerdctlOptions = [
    ...["--address", containerd.address],
    ...["--namespace", namespace],
    ...["--data-root", join(dir, "nerdctl")],
    ...["--cni-path", CNI_BIN_DIR],
    ...["--cni-netconfpath", join(dir, "cni")],
  ];
  const nerdctl = (args: readonly string[], options?: RunOptions) => {
    const call = () => run(nerdctlPath, [...nerdctlOptions, ...args], options);
    return args[0] === "ps" ? retryListing(call) : call();
  };
  const loadImage: TestHost["loadImage"] = async (image) => {
    await loadImageArchive({
      address: containerd.address,
      namespace,
      archivePath: await buildBusyboxImage(image),
    });
    return image.name;
  };
  return {
    name,
    dir,
    containerd,
    namespace,
    nerdctlPath,
    nerdctlOptions,
    image: await loadImage({ name: IMAGE }),
    nerdctl,
    loadImage,
    spawn(programName, file, args, options) {
      const program = spawnProgram(file, args, { logPath: join(dir, `${programName}.log`), ...options });
      rememberProcess(name, program.identity);
      return program;
    },
    startRegistry: (options = {}) =>
      startRegistry({
        dir: join(dir, "registry"),
        ...options,
        onStart: (identity) => rememberProcess(name, identity),
      }),
    networkRemains: () => findNetworkRemains(name),
    close: () => removeTestHost(name),
  };
}
