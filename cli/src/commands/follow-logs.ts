import { messageOf } from "@forage/common/message-of";
import { type LogOptions, PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { Pod } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import { plainText } from "../output/plain-text.ts";
import { pause } from "../pause.ts";
import { followLog } from "../session/follow-log.ts";
import { Lines, prefixLines } from "../session/lines.ts";
import { write } from "../session/write.ts";
import { findPodsOf } from "./find.ts";

export interface FollowLogsOptions {
  readonly context: Context;
  readonly coordinator: Coordinator;
  readonly container: string;
  readonly options: LogOptions;
}

interface Workload {
  readonly kind: string;
  readonly name: string;
}

/** The most followed pods. Each needs a stream through coordinator and agent. */
const MAX_FOLLOWED = 50;
/**
 * The interval of polling for new pods. Their logs are read from the first line, so a shorter
 * interval would not show more.
 */
const LOOK_AGAIN_MS = 2_000;

/** Follows the log of one container of a pod until the container ends. */
export async function followPod(following: FollowLogsOptions, pod: Pod): Promise<void> {
  const { stdout } = following.context.world;
  await follow(following, pod, { restarts: false }, (data) => write(stdout, data, following.context.signal));
}

/**
 * Follows all pods of a workload at once, including later ones, until no pod is left that could
 * write.
 */
export async function followWorkload(
  following: FollowLogsOptions,
  workload: Workload,
  first: readonly Pod[],
): Promise<void> {
  const { context, coordinator } = following;
  if (first.length > MAX_FOLLOWED)
    throw new CliError(
      "USAGE",
      `${first.length} pods are too many to follow at once (at most ${MAX_FOLLOWED}): name one`,
    );
  const followers = new Followers(following, Math.max(...first.map(({ name }) => name.length)));
  // The options decide which earlier lines are shown; later lines are shown completely.
  followers.update(first, following.options);
  while (true) {
    await Promise.race([followers.allEnded(), pause(LOOK_AGAIN_MS, context.signal)]);
    const failure = followers.failure;
    if (failure !== undefined) throw failure;
    const pods = await listed(coordinator, context, workload);
    if (pods === undefined) continue;
    followers.update(pods, { ...following.options, tailLines: undefined, since: undefined });
    if (followers.open === 0 && pods.every(isOver)) return;
    await pause(LOOK_AGAIN_MS / 4, context.signal);
  }
}

/** Lists the pods; undefined if the coordinator does not answer. */
async function listed(
  coordinator: Coordinator,
  { settings }: Context,
  workload: Workload,
): Promise<readonly Pod[] | undefined> {
  try {
    return await findPodsOf(coordinator, settings.namespace, workload);
  } catch (error) {
    if (error instanceof CallError && error.passing) return undefined;
    throw error;
  }
}

class Followers {
  readonly #following: FollowLogsOptions;
  readonly #width: number;
  readonly #open = new Map<string, Promise<void>>();
  /** The last message about each pod by uid, and the last message about all pods without a uid. */
  readonly #said = new Map<string, string>();
  /** The containers whose logs have ended. */
  readonly #done = new Set<string>();
  failure: unknown;

  constructor(following: FollowLogsOptions, width: number) {
    this.#following = following;
    this.#width = width;
  }

  get open(): number {
    return this.#open.size;
  }

  async allEnded(): Promise<void> {
    await Promise.all(this.#open.values());
    // No log is open, so the next listing decides whether to continue.
    await pause(LOOK_AGAIN_MS, this.#following.context.signal);
  }

  update(pods: readonly Pod[], options: LogOptions): void {
    // Pods come and go while a workload is followed, so entries of deleted pods are removed.
    const present = new Set(pods.map(({ uid }) => uid));
    for (const uid of this.#done) if (!present.has(uid)) this.#done.delete(uid);
    for (const uid of this.#said.keys()) if (uid !== "" && !present.has(uid)) this.#said.delete(uid);
    for (const pod of pods) {
      if (this.#open.has(pod.uid) || this.#done.has(pod.uid)) continue;
      if (this.#open.size >= MAX_FOLLOWED) {
        this.#report("", `more than ${MAX_FOLLOWED} pods: those that come now are not followed`);
        return;
      }
      const end = this.#run(pod, options).finally(() => this.#open.delete(pod.uid));
      this.#open.set(pod.uid, end);
    }
  }

  async #run(pod: Pod, options: LogOptions): Promise<void> {
    const { context } = this.#following;
    const { stdout } = context.world;
    const prefix = `${context.paint("faint", `${pod.name.padEnd(this.#width)} |`)} `;
    const lines = new Lines();
    try {
      await follow({ ...this.#following, options }, pod, { restarts: true }, (data) =>
        write(stdout, prefixLines(lines.push(data), prefix), context.signal),
      );
      this.#done.add(pod.uid);
    } catch (error) {
      if (context.signal.aborted) this.failure ??= error;
      // A pod without a log must not hide the logs of others, and may have a log later.
      else this.#report(pod.uid, `${pod.name}: ${messageOf(error)}`);
    } finally {
      await write(stdout, prefixLines(lines.end(), prefix), context.signal);
    }
  }

  #report(about: string, text: string): void {
    if (this.#said.get(about) === text) return;
    this.#said.set(about, text);
    this.#following.context.world.stderr.write(`${plainText(text)}\n`);
  }
}

function follow(
  { context, coordinator, container, options }: FollowLogsOptions,
  { namespace, name, uid }: Pod,
  { restarts }: { readonly restarts: boolean },
  show: (data: Uint8Array) => Promise<void>,
): Promise<void> {
  const { signal, world } = context;
  return followLog({
    open: (log) => coordinator.stream(operator.logs, { namespace, pod: name, container, options: log }),
    readPod: async () => {
      const request = { namespace, labels: {}, workload: "", node: "", name };
      const { pods } = await coordinator.call(operator.listPods, request);
      const pod = pods.find((each) => each.uid === uid);
      return pod === undefined || isOver(pod) ? undefined : pod;
    },
    container,
    log: options,
    restarts,
    show,
    onLost: (error) => {
      const reason = messageOf(error);
      world.stderr.write(`${plainText(`${name}: the log broke off: ${reason}; trying again`)}\n`);
    },
    random: world.random,
    signal,
  });
}

function isOver({ status }: Pod): boolean {
  const phase = status?.phase;
  return phase === PodPhase.SUCCEEDED || phase === PodPhase.FAILED || phase === PodPhase.REMOVED;
}
