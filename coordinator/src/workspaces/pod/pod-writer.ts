import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import {
  createPod,
  forgetPod,
  newPodRecord,
  rewritePod,
  templateRefOf,
  templateWrite,
} from "../../control/pod-writes.ts";
import { CoordinatorError } from "../../errors.ts";
import type { StoreWrite } from "../../model/batches.ts";
import { podTemplateKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { workloadKey } from "../../model/workload.ts";
import type { Vault } from "../../objects/vault.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { NORMAL_GRACE_SECONDS } from "../phase/plan.ts";
import { openSecrets } from "../records.ts";
import { classOf, type WorkspaceSettings } from "../settings.ts";
import type { WorkspaceView } from "../view.ts";
import { WORKSPACE_KIND } from "../workspace-kind.ts";
import type { ExtraWrites } from "../writer.ts";
import { environmentOf } from "./environment.ts";
import { putEnvironment } from "./environment-secret.ts";
import { INSTANCE_LABEL, podNameOf, podTemplateOf } from "./pod-template.ts";

export interface PodWriterOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly view: WorkspaceView;
  readonly vault: Vault;
  readonly settings: WorkspaceSettings;
  readonly clock: Clock;
  readonly randomName: (length: number) => string;
}

const HOSTNAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Builds the writes that create, stop and delete the pods of workspaces. */
export class PodWriter {
  readonly #options: PodWriterOptions;

  constructor(options: PodWriterOptions) {
    this.#options = options;
  }

  /**
   * Stores the environment's secret. Returns the writes that create the pod, and the record that
   * names the pod.
   */
  async create(
    record: InstanceRecord,
  ): Promise<{ readonly record: InstanceRecord; readonly writes: ExtraWrites }> {
    const { view, vault, settings, state, clock, randomName } = this.#options;
    const sealed = view.secrets(record.id);
    if (sealed === undefined)
      throw new CoordinatorError("INTERNAL", `workspace ${record.id} has no secrets record`);
    const environment = environmentOf(record, openSecrets(record.id, sealed, vault), settings);
    await putEnvironment(record, environment, this.#options);
    const template = this.#template(record, NORMAL_GRACE_SECONDS, environment);
    const ref = templateRefOf(template);
    const name = podNameOf(record.id);
    const uid = randomName(12);
    const { namespace } = record;
    const metaId = record.metadata?.metaId ?? "";
    const pod = newPodRecord(
      {
        ...{ namespace, name, uid, workloadKind: WORKSPACE_KIND, workloadName: record.id },
        labels: { [INSTANCE_LABEL]: record.id },
        templateRef: ref,
        templateHash: ref,
        priority: state.objects.priorityOf(template.podConfig?.priorityClassName ?? ""),
        ...(HOSTNAME.test(metaId) && { hostname: metaId }),
      },
      clock.nowMs(),
    );
    return {
      record: { ...record, podCreated: true, podName: name, podUid: uid },
      writes: joined([
        templateWrite({ namespace, kind: WORKSPACE_KIND, name: record.id, template }, ref),
        createPod(pod),
      ]),
    };
  }

  /**
   * Returns the writes that stop a pod. The pod gets a template with the stop's grace period, and
   * keeps its template hash so that its containers are still recognized.
   */
  stop(
    record: InstanceRecord,
    { pod, graceSeconds }: { readonly pod: PodEntry; readonly graceSeconds: number },
  ): ExtraWrites {
    const { clock, state } = this.#options;
    const stopping = {
      ...pod.record,
      stoppingSince: toTimestamp(clock.nowMs()),
      stopReason: `workspace ${record.id} is stopped: ${record.stop?.cause ?? ""}`,
    };
    const template = pod.record.template;
    if (graceSeconds === NORMAL_GRACE_SECONDS || template?.podConfig === undefined)
      return joined([rewritePod(pod, stopping)]);
    const hasty = {
      ...template,
      podConfig: { ...template.podConfig, terminationGracePeriodSeconds: graceSeconds },
    };
    const ref = templateRefOf(hasty);
    const { namespace } = record;
    const shared = { namespace, kind: WORKSPACE_KIND, name: record.id, template: hasty };
    const isStored = state.podTemplates.has(
      podTemplateKey(workloadKey(namespace, WORKSPACE_KIND, record.id), ref),
    );
    return joined([
      ...(isStored ? [] : [templateWrite(shared, ref)]),
      rewritePod(pod, { ...stopping, templateRef: ref }),
    ]);
  }

  /** Returns the writes that delete a pod that was never assigned to a node. */
  forget(pod: PodEntry): ExtraWrites {
    return joined([forgetPod(pod)]);
  }

  #template(record: InstanceRecord, graceSeconds: number, environment: ReturnType<typeof environmentOf>) {
    const { settings } = this.#options;
    const size = classOf(settings, record.spec?.class ?? "") ?? settings.classes[0];
    if (size === undefined) throw new CoordinatorError("INTERNAL", "no workspace classes are configured");
    return podTemplateOf({ record, settings, class: size, graceSeconds, environment });
  }
}

function joined(writes: readonly StoreWrite[]): ExtraWrites {
  return { compares: writes.flatMap(({ compares }) => compares), ops: writes.flatMap(({ ops }) => ops) };
}
