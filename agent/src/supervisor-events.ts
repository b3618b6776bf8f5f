import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import type { NoteDamage } from "./damage-reports.ts";
import type { StatusOutbox } from "./link/status-outbox.ts";
import type { NodeReporter } from "./node-reporter.ts";
import type { Step } from "./pods/step.ts";
import type { HostPart, SupervisorEvents } from "./pods/supervisor-options.ts";
import type { StateSaver } from "./state-saver.ts";

export interface SupervisorListeners {
  readonly log: Log;
  readonly saver: Pick<StateSaver, "save" | "saveOutcome" | "saveRemoved" | "forget">;
  readonly outbox: StatusOutbox;
  readonly reporter: Pick<NodeReporter, "impaired" | "checkClaims">;
  readonly stepped: (step: Step, tookMs: number, failed: boolean) => void;
  readonly changed: (podUid: string) => void;
  readonly noteDamage: NoteDamage;
  /** Returns the path of a pod's state. */
  readonly stateFile: (podUid: string) => string;
}

/** Returns listeners that pass on each of the supervisor's events. */
export function supervisorEvents({
  log,
  saver,
  outbox,
  reporter,
  stepped,
  changed,
  noteDamage,
  stateFile,
}: SupervisorListeners): SupervisorEvents {
  const down = new Map<HostPart, string>();
  return {
    remembered: (podUid, memory) => saver.save(podUid, memory),
    over: (podUid, memory) => saver.saveOutcome(podUid, memory),
    removed: (podUid, memory) => saver.saveRemoved(podUid, memory),
    changed: (status) => {
      outbox.put(status);
      changed(status.uid);
    },
    recovered: (pod) =>
      noteDamage(
        stateFile(pod),
        "it is missing or damaged",
        `pod ${pod} was read back from the kernel and containerd`,
      ),
    hookFailed: (pod, container, reason) => log.warn({ event: "hook-failed", pod, container, reason }),
    stepped: (pod, step, tookMs, error) => {
      stepped(step, tookMs, error !== undefined);
      // These steps create and release claims.
      if (step.type === "startContainer" || step.type === "cleanUp") reporter.checkClaims();
      const { type: kind, ...rest } = step;
      const fields = { pod, kind, ...rest, tookMs: Math.round(tookMs) };
      if (error !== undefined) log.warn({ event: "step-failed", ...fields, reason: messageOf(error) });
      else if (changesHost(step)) log.info({ event: "step-done", ...fields });
      else log.debug({ event: "step-done", ...fields });
    },
    forgotten: (podUid) => {
      outbox.drop(podUid);
      changed(podUid);
      void saver.forget(podUid);
      log.info({ event: "pod-forgotten", pod: podUid });
    },
    impaired: (part, error) => {
      const message = error === undefined ? undefined : messageOf(error);
      reporter.impaired(part, message);
      if (message === down.get(part)) return;
      if (message === undefined) down.delete(part);
      else down.set(part, message);
      if (message === undefined) log.info({ event: "host-part-works-again", part });
      else log.warn({ event: "host-part-impaired", part, reason: message });
    },
  };
}

function changesHost(step: Step): boolean {
  switch (step.type) {
    case "startContainer":
    case "stopContainer":
    case "postStart":
    case "updatePorts":
    case "updateVolumes":
    case "removeContainers":
    case "recordExit":
    case "adopt":
    case "cleanUp":
      return true;
    case "saveOutcome":
    case "inspect":
    case "fetchImage":
    case "attachSandbox":
    case "allocatePorts":
    case "publishPorts":
      return false;
    default:
      return step satisfies never;
  }
}
