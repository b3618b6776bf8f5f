import { withLinkedSignal } from "@forage/common/link-signals";
import type { Clock } from "../../clock.ts";
import { type ContainerRuntime, type RegistryLogin, RuntimeError } from "../../runtime/runtime.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError } from "../driver-error.ts";
import type { DriverLog } from "./driver-log.ts";
import { readLogins } from "./registry-logins.ts";

export interface TaskImagesOptions {
  readonly runtime: Pick<ContainerRuntime, "hasImage" | "pull" | "removeImage">;
  readonly options: Pick<DriverOptions, "gc" | "authConfigFile">;
  readonly clock: Clock;
  readonly log: DriverLog;
}

/**
 * The images of tasks. They are pulled before a start, and removed some time after the end of the last task that used
 * them.
 */
export class TaskImages {
  readonly #options: TaskImagesOptions;
  /** The ids of tasks by the image that they use. */
  readonly #uses = new Map<string, Set<string>>();
  /** Functions that cancel the removal of unused images. */
  readonly #removals = new Map<string, () => void>();
  readonly #closing = new AbortController();

  constructor(options: TaskImagesOptions) {
    this.#options = options;
  }

  /** Makes the image available in the local store, by the task's pull policy. `image` is its full name. */
  async ensure(image: string, task: TaskOptions, onPull: () => void, signal: AbortSignal): Promise<void> {
    const { runtime } = this.#options;
    const present = await runtime.hasImage(image, signal);
    if (task.imagePullPolicy === "never" && !present)
      throw new DriverError(
        "FAILED_PRECONDITION",
        `image ${image} is not on this host, and image_pull_policy is never`,
      );
    if (task.imagePullPolicy === "never" || (task.imagePullPolicy === "missing" && present)) return;
    onPull();
    await this.#pull(image, task, signal);
  }

  /** Records that the task uses the image until `releaseAll`. */
  hold(image: string, taskId: string): void {
    this.#removals.get(image)?.();
    this.#removals.delete(image);
    this.#uses.set(image, (this.#uses.get(image) ?? new Set()).add(taskId));
  }

  /** Records that the task no longer uses any image. */
  releaseAll(taskId: string): void {
    const { options, clock } = this.#options;
    for (const [image, users] of this.#uses) {
      if (!users.delete(taskId) || users.size > 0) continue;
      this.#uses.delete(image);
      if (options.gc.image && !this.#closing.signal.aborted)
        this.#removals.set(
          image,
          clock.schedule(options.gc.imageDelayMs, () => void this.#remove(image)),
        );
    }
  }

  close(): void {
    this.#closing.abort();
    for (const cancel of this.#removals.values()) cancel();
    this.#removals.clear();
  }

  async #pull(image: string, { auth, imagePullTimeoutMs }: TaskOptions, signal: AbortSignal): Promise<void> {
    const { runtime, options } = this.#options;
    const server = auth?.serverAddress ?? (image.split("/", 1)[0] || image);
    const credentials: readonly RegistryLogin[] =
      auth === undefined
        ? await readLogins(options.authConfigFile)
        : [{ server, username: auth.username, password: auth.password }];
    const limit = AbortSignal.timeout(imagePullTimeoutMs);
    try {
      await withLinkedSignal([signal, limit], (either) => runtime.pull(image, either, { credentials }));
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error;
      const message = `image ${image} was not pulled within ${imagePullTimeoutMs} ms: raise image_pull_timeout`;
      throw new RuntimeError("TIMEOUT", message, { retryable: true, cause: error });
    }
  }

  async #remove(image: string): Promise<void> {
    this.#removals.delete(image);
    const { runtime, log } = this.#options;
    try {
      const result = await runtime.removeImage(image, this.#closing.signal);
      log("debug", "image-collected", { image, result });
    } catch (error) {
      log("warn", "image-not-collected", { image, error: String(error) });
    }
  }
}
