import type { ContainerStatus, ContainerTerminated } from "@forage/proto/forage/agent/v1/agent";
import { hint } from "../model/hint.ts";
import { isImageFailure, onNodes } from "../model/image-failure.ts";
import { toEpochMs } from "../model/timestamp.ts";
import { type Cause, cause } from "./cause.ts";

/** The facts that explain a container's failure. */
export interface ContainerInput {
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly nowMs: number;
}

/** The advice for each reason of a waiting container. */
const ADVICES: Readonly<Record<string, string>> = {
  ErrImageNotFound: "check the image's name and tag, then apply again",
  ErrImageInvalid: "check that the image is made for this host's architecture, then apply again",
  ImagePullBackOff: "check that the node reaches the registry; the agent retries automatically",
  FailedMount: "check the volume that is named; the agent retries automatically",
  CreateError: "correct the container's settings and apply again",
};

function adviceFor(reason: string, namespace: string): string {
  const registry = hint(namespace, "registry set NAME SERVER --username USER --password-stdin");
  const secret = hint(namespace, "secret set NAME --from-file KEY=FILE");
  const config = hint(namespace, "config set NAME --from-file KEY=FILE");
  if (reason === "ErrImageDenied")
    return `name a registry credential of the namespace in pod_config.image_pull_secrets (\`${registry}\`)`;
  if (reason === "CreateContainerConfigError")
    return `create what is missing (\`${secret}\`, \`${config}\`); the pod then starts automatically`;
  return ADVICES[reason] ?? "";
}

/**
 * Explains why a container is not ready; empty for a container that is ready or starting normally.
 */
export function containerCauses(container: ContainerStatus, input: ContainerInput): Cause[] {
  const { name, state, init, ready } = container;
  if (init && ready) return [];
  switch (state?.$case) {
    case "waiting":
      return waiting(container, state.value, input);
    case "terminated":
      if (state.value.exitCode === 0 && state.value.signal === 0) return [];
      return [ended("ContainerFailed", container, state.value, input)];
    case "running":
      return init ? [cause("PodInitializing", `init container ${name} is running`)] : [];
    case undefined:
      return [];
    default:
      return state satisfies never;
  }
}

/** Explains the restarts of a container that is now running. */
export function restartCauses(container: ContainerStatus, input: ContainerInput): Cause[] {
  const last = container.lastTermination;
  if (container.restartCount === 0 || last === undefined) return [];
  const { reason, message, details, advice } = ended("Restarted", container, last, input);
  const times = container.restartCount === 1 ? "once" : `${container.restartCount} times`;
  return [cause(reason, `container ${container.name} was restarted ${times}; ${message}`, advice, details)];
}

function waiting(
  container: ContainerStatus,
  { reason, message, retryAt }: { readonly reason: string; readonly message: string; readonly retryAt: Time },
  input: ContainerInput,
): Cause[] {
  const { name, lastTermination } = container;
  const retry = retryText(retryAt, input.nowMs);
  if (reason === "CrashLoopBackOff" && lastTermination !== undefined) {
    const crash = ended(reason, container, lastTermination, input);
    const times = container.restartCount === 0 ? "" : `, restarted ${container.restartCount} times`;
    return [cause(reason, `${crash.message}${times}${retry}`, crash.advice, crash.details)];
  }
  if (reason === "" || reason === "ContainerCreating" || reason === "PodInitializing") return [];
  const where = isImageFailure(reason) ? onNodes([input.node]) : "";
  const text = `container ${name}: ${message === "" ? reason : message}${where}${retry}`;
  return [cause(reason, text, adviceFor(reason, input.namespace))];
}

type Time = { readonly seconds: bigint; readonly nanos: number } | undefined;

/**
 * Describes the last termination of a container, with its last lines and the command that shows
 * more.
 */
function ended(
  reason: string,
  { name }: ContainerStatus,
  last: ContainerTerminated,
  { namespace, pod, nowMs }: ContainerInput,
): Cause {
  const how = last.signal > 0 ? `was killed by signal ${last.signal}` : `exited with code ${last.exitCode}`;
  const word = last.reason === "" || last.reason === "Completed" ? "" : ` (${last.reason})`;
  const atMs = toEpochMs(last.finishedAt);
  const when = atMs === undefined ? "" : ` ${Math.max(0, Math.round((nowMs - atMs) / 1000))} s ago`;
  const advice =
    last.reason === "OOMKilled"
      ? "give it a higher memory limit, or have it use less"
      : `read its logs: ${hint(namespace, `logs ${pod} -c ${name} --previous`)}`;
  const lines = last.message.trim();
  return cause(
    reason,
    `container ${name} ${how}${word}${when}`,
    advice,
    lines === "" ? [] : lines.split("\n"),
  );
}

function retryText(retryAt: Time, nowMs: number): string {
  const atMs = toEpochMs(retryAt);
  if (atMs === undefined) return "";
  const seconds = Math.round((atMs - nowMs) / 1000);
  return seconds > 0 ? `; the next try is in ${seconds} s` : "; the next try is due";
}
