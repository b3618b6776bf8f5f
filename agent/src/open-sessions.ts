import type { ImagePullOptions } from "@forage/proto/forage/agent/v1/agent";
import type { Config } from "./config.ts";
import { oneExamination } from "./examine/one-examination.ts";
import { ImagePushes } from "./images/image-push.ts";
import { ImageReads } from "./images/image-reads.ts";
import type { ImageRecords } from "./images/image-records.ts";
import { pacer } from "./images/pacer.ts";
import { freeBytes } from "./images/used-percent.ts";
import { SessionServer } from "./link/session-server.ts";
import type { NodeLogs } from "./node-logs.ts";
import type { NodeReporter } from "./node-reporter.ts";
import { describePull } from "./pods/describe-pull.ts";
import { defaultPullPolicy } from "./pods/image-reference.ts";
import { hasLogin } from "./pods/image-store.ts";
import type { PodSupervisor } from "./pods/pod-supervisor.ts";
import { CtrImages } from "./runtime/nerdctl/ctr-images.ts";
import { HOST_ARCHITECTURE } from "./runtime/nerdctl/foreign-image.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import { ContainerFiles } from "./sessions/container-files.ts";
import { inputOpener } from "./sessions/container-input.ts";
import { PodDialer } from "./sessions/dial-pod.ts";
import { TerminalInputs } from "./sessions/terminal-input.ts";
import { type SupportSources, supportFiles } from "./support/support-files.ts";

export interface OpenSessionsOptions {
  readonly config: Config;
  readonly ownCommand: readonly string[];
  readonly runtime: ContainerRuntime;
  readonly supervisor: PodSupervisor;
  readonly logs: NodeLogs;
  readonly records: ImageRecords;
  readonly reporter: NodeReporter;
  readonly support: () => SupportSources;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
}

/** Connects all parts of this host that operators' sessions use. */
export function openSessions(options: OpenSessionsOptions): SessionServer {
  const { runtime, supervisor, logs, ownCommand } = options;
  const [nodePath = ""] = ownCommand;
  const files = new ContainerFiles({ inspect: (id, signal) => runtime.inspect(id, signal), ownCommand });
  const terminals = new TerminalInputs();
  const dialer = new PodDialer((podUid) => supervisor.sandboxOf(podUid), nodePath);
  return new SessionServer({
    find: (podUid, container) => logs.findKept(podUid, container) ?? supervisor.find(podUid, container),
    readLog: (of, options, signal) => logs.containers.read(of, options, signal),
    openInput: inputOpener(
      async (id, signal) => (await runtime.inspect(id, signal))?.pid,
      (pid) => terminals.open(pid),
    ),
    exitCodeOf: (podUid, run) => supervisor.exitCodeOf(podUid, run),
    nowMs: () => options.support().clock.nowMs(),
    exec: (id, options, signal) => runtime.exec(id, options, signal),
    networkOf: (podUid) => supervisor.sandboxOf(podUid)?.namespacePath,
    dial: (podUid, port, signal) => dialer.dial(podUid, port, signal),
    copy: (id, options, signal) => files.copy(id, options, signal),
    sftp: (id, options, signal) => files.sftp(id, options, signal),
    images: openPushes(options),
    imageReads: new ImageReads({
      ...{ content: new CtrImages(options.config.containerd), access: options.records },
      architecture: HOST_ARCHITECTURE,
      transfers: options.config.images.transfers,
      pace: pacer(options.config.images.transferRate, options.support().clock),
    }),
    pullImage: (pull, onProgress, signal) => pullImage(options, pull, onProgress, signal),
    support: () => supportFiles(options.support()),
    examine: oneExamination(options.config),
  });
}

function openPushes(options: OpenSessionsOptions): ImagePushes {
  const { config, runtime, records, supervisor } = options;
  return new ImagePushes({
    ...{ runtime, records, freeBytes },
    importer: new CtrImages(config.containerd),
    events: {
      stored: (reference) => imageStored(options, reference),
      removed: (reference) => {
        supervisor.imageRemoved(reference);
        listAgain(options);
      },
    },
  });
}

async function pullImage(
  options: OpenSessionsOptions,
  pull: ImagePullOptions,
  onProgress: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { runtime, records } = options;
  const { image, namespace, registryCredentials } = pull;
  const isHere = await runtime.hasImage(image, signal);
  if (isHere && records.isOpenTo(image, namespace) && defaultPullPolicy(image) === "IfNotPresent") return;
  await runtime.pull(image, signal, {
    credentials: registryCredentials,
    onProgress: (state) => onProgress(describePull(state)),
  });
  const objects = { secrets: [], configMaps: [], envVersions: {}, registryCredentials };
  records.pulled(image, namespace, hasLogin(image, { namespace, objects }));
  imageStored(options, image);
}

function imageStored(options: OpenSessionsOptions, reference: string): void {
  options.supervisor.imageStored(reference);
  listAgain(options);
}

/** Lists the images again, because the coordinator places pods by the images that nodes report. */
function listAgain({ reporter, signal }: OpenSessionsOptions): void {
  void reporter.checkImages(signal);
}
