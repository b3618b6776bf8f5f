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
import { type SupportSources, supportFiles } from "./support/support-files.ts";

export interface SessionParts {
  readonly config: Config;
  readonly ownCommand: readonly string[];
  readonly runtime: ContainerRuntime;
  readonly supervisor: PodSupervisor;
  readonly logs: NodeLogs;
  readonly records: ImageRecords;
  readonly reporter: NodeReporter;
  readonly support: () => SupportSources;
  /** Ends with the agent. */
  readonly signal: AbortSignal;
}

/** Wires everything that operators' sessions reach on this host. */
export function openSessions(parts: SessionParts): SessionServer {
  const { runtime, supervisor, logs, ownCommand } = parts;
  const [nodePath = ""] = ownCommand;
  const files = new ContainerFiles({ inspect: (id, signal) => runtime.inspect(id, signal), ownCommand });
  const dialer = new PodDialer((podUid) => supervisor.sandboxOf(podUid), nodePath);
  return new SessionServer({
    find: (podUid, container) => logs.findKept(podUid, container) ?? supervisor.find(podUid, container),
    readLog: (of, options, signal) => logs.containers.read(of, options, signal),
    openInput: inputOpener(async (id, signal) => (await runtime.inspect(id, signal))?.pid),
    exitCodeOf: (podUid, run) => supervisor.exitCodeOf(podUid, run),
    nowMs: () => parts.support().clock.nowMs(),
    exec: (id, options, signal) => runtime.exec(id, options, signal),
    networkOf: (podUid) => supervisor.sandboxOf(podUid)?.namespacePath,
    dial: (podUid, port, signal) => dialer.dial(podUid, port, signal),
    copy: (id, options, signal) => files.copy(id, options, signal),
    sftp: (id, options, signal) => files.sftp(id, options, signal),
    images: openPushes(parts),
    imageReads: new ImageReads({
      ...{ content: new CtrImages(parts.config.containerd), access: parts.records },
      architecture: HOST_ARCHITECTURE,
      transfers: parts.config.images.transfers,
      pace: pacer(parts.config.images.transferRate, parts.support().clock),
    }),
    pullImage: (options, onProgress, signal) => pullImage(parts, options, onProgress, signal),
    support: () => supportFiles(parts.support()),
    examine: oneExamination(parts.config),
  });
}

function openPushes(parts: SessionParts): ImagePushes {
  const { config, runtime, records, supervisor } = parts;
  return new ImagePushes({
    ...{ runtime, records, freeBytes },
    importer: new CtrImages(config.containerd),
    events: {
      stored: (reference) => imageStored(parts, reference),
      removed: (reference) => {
        supervisor.imageRemoved(reference);
        listAgain(parts);
      },
    },
  });
}

async function pullImage(
  parts: SessionParts,
  options: ImagePullOptions,
  onProgress: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { runtime, records } = parts;
  const { image, namespace, registryCredentials } = options;
  const isHere = await runtime.hasImage(image, signal);
  if (isHere && records.isOpenTo(image, namespace) && defaultPullPolicy(image) === "IfNotPresent") return;
  await runtime.pull(image, signal, {
    credentials: registryCredentials,
    onProgress: (state) => onProgress(describePull(state)),
  });
  const objects = { secrets: [], configMaps: [], envVersions: {}, registryCredentials };
  records.pulled(image, namespace, hasLogin(image, { namespace, objects }));
  imageStored(parts, image);
}

function imageStored(parts: SessionParts, reference: string): void {
  parts.supervisor.imageStored(reference);
  listAgain(parts);
}

/** The coordinator places pods by the images that nodes report. */
function listAgain({ reporter, signal }: SessionParts): void {
  void reporter.checkImages(signal);
}
