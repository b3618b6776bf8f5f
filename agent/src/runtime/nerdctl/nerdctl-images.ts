import type { Clock } from "../../clock.ts";
import { CallLimit } from "../call-limit.ts";
import { normalizeImage } from "../image-reference.ts";
import { type PullOptions, type PullState, type RegistryLogin, RuntimeError } from "../runtime.ts";
import { checkPlatform, foreignImage } from "./foreign-image.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";
import { pullImage } from "./pull-image.ts";
import { loginsFor, withLogin } from "./registry-login.ts";
import { SharedPulls } from "./shared-pulls.ts";

export interface NerdctlImagesOptions {
  readonly cli: NerdctlCli;
  readonly clock: Clock;
  /** The time without progress after which a pull is cancelled. */
  readonly pullStallMs: number;
  /** A private directory that holds credentials while a pull is running. */
  readonly privateDir: string;
}

// Pulls compete for one disk and one network link.
const CONCURRENT_PULLS = 4;
// The call deletes the layers before it returns, which may take seconds for each GB.
const REMOVE_TIMEOUT_MS = 600_000;

/** The local image store, accessed through nerdctl. */
export class NerdctlImages {
  readonly #options: NerdctlImagesOptions;
  readonly #limit = new CallLimit(CONCURRENT_PULLS);
  readonly #pulls: SharedPulls;
  #storage: string | undefined;

  constructor(options: NerdctlImagesOptions) {
    this.#options = options;
    this.#pulls = new SharedPulls((...pull) => this.#limit.run(pull[3], () => this.#pullWithAny(...pull)));
  }

  /**
   * Reports whether the image is in the local store. Rejects with IMAGE_INVALID if it is stored for other platforms
   * only.
   */
  async has(reference: string, signal: AbortSignal): Promise<boolean> {
    const image = normalizeImage(reference);
    const bare = digestWithoutTag(image);
    const format = "{{.ID}} {{.Os}}/{{.Architecture}}";
    const args = ["image", "inspect", "--format", format, "--", bare ?? image];
    try {
      if (bare !== undefined && !(await this.list(signal)).includes(image)) return false;
      const [id = "", platform = ""] = (await this.#options.cli.call(args, { signal })).stdout
        .trim()
        .split(" ");
      if (id !== "") checkPlatform(image, platform);
      return id !== "";
    } catch (error) {
      if (error instanceof RuntimeError && error.code === "NOT_FOUND") return false;
      throw error;
    }
  }

  async pull(reference: string, signal: AbortSignal, options: PullOptions = {}): Promise<void> {
    const image = normalizeImage(reference);
    const credentials = loginsFor(image, options.credentials ?? []);
    await this.#pulls.pull(image, signal, { ...options, credentials });
    await this.has(image, signal);
  }

  async list(signal: AbortSignal): Promise<readonly string[]> {
    const { stdout } = await this.#options.cli.call(["images", "--names", "--format", "{{.Name}}"], {
      signal,
    });
    return [...new Set(stdout.split("\n").filter(Boolean))];
  }

  async remove(reference: string, signal: AbortSignal): Promise<"removed" | "in-use" | "absent"> {
    const args = ["rmi", "--", normalizeImage(reference)];
    try {
      await this.#options.cli.call(args, { signal, timeoutMs: REMOVE_TIMEOUT_MS, unlimited: true });
      return "removed";
    } catch (error) {
      if (!(error instanceof RuntimeError)) throw error;
      if (/conflict: .*is being used by/.test(error.message)) return "in-use";
      if (/no such image/.test(error.message)) return "absent";
      throw error;
    }
  }

  /** Returns the directory of containerd's snapshotter, which does not change while containerd runs. */
  async storage(signal: AbortSignal): Promise<string | undefined> {
    if (this.#storage !== undefined) return this.#storage;
    const args = ["info", "--mode", "native", "--format", "{{json .Daemon.Plugins}}"];
    const { stdout } = await this.#options.cli.call(args, { signal });
    this.#storage = readStorage(stdout);
    return this.#storage;
  }

  async #pullWithAny(
    reference: string,
    credentials: readonly RegistryLogin[],
    onProgress: (state: PullState) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const [first, ...others] = credentials;
    if (first === undefined) return this.#pullOnce(reference, undefined, onProgress, signal);
    try {
      await withLogin(this.#options.privateDir, first, (dir) =>
        this.#pullOnce(reference, dir, onProgress, signal),
      );
    } catch (error) {
      // Registries answer 404 for images that a login must not see.
      const another = error instanceof RuntimeError && /^IMAGE_(DENIED|NOT_FOUND)$/.test(error.code);
      if (!another || others.length === 0) throw error;
      await this.#pullWithAny(reference, others, onProgress, signal);
    }
  }

  async #pullOnce(
    reference: string,
    dockerConfigDir: string | undefined,
    onProgress: (state: PullState) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { cli, clock, pullStallMs: stallMs } = this.#options;
    const env = dockerConfigDir === undefined ? {} : { DOCKER_CONFIG: dockerConfigDir };
    try {
      await pullImage({ cli, clock, stallMs, env, onProgress }, reference, signal);
    } catch (error) {
      const foreign =
        error instanceof RuntimeError && /no match for platform|unsupported platform/.test(error.message);
      throw foreign ? await foreignImage(cli, reference, env, signal) : error;
    }
  }
}

interface Plugin {
  readonly type?: string;
  readonly id?: string;
  readonly exports?: Readonly<Record<string, string>>;
}

/** Reads the storage directory from containerd's list of plugins. */
export function readStorage(json: string): string | undefined {
  const { plugins = [] } = JSON.parse(json) as { readonly plugins?: readonly Plugin[] };
  const rootOf = (type: string, id: string) =>
    plugins.find((it) => it.type === type && it.id === id)?.exports?.root;
  return rootOf("io.containerd.snapshotter.v1", "overlayfs") ?? rootOf("io.containerd.content.v1", "content");
}

/**
 * Returns the digest of a name that has a digest and no tag. nerdctl runs such an image by name, but inspects it only
 * by the digest alone.
 */
function digestWithoutTag(image: string): string | undefined {
  return /^[^@]*\/[^/:@]+@(sha256:[0-9a-f]{64})$/.exec(image)?.[1];
}
