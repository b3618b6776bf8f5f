import { useEffect, useState } from "preact/hooks";
import { call } from "../data/api.ts";
import type { ApiError } from "../data/api-error.ts";
import { asApiError, may, useApp, useCall, useTables } from "../data/app.ts";
import { ago, bytes, cores, dateTime } from "../data/format.ts";
import type { PageLocation } from "../data/location.ts";
import type { WhatIfAnswer, WireNode } from "../data/wire.ts";
import { UsageGraphs } from "../parts/graphs.tsx";
import { Badge, Bar, Dialog, Failure, Field, Head } from "../parts/pieces.tsx";
import { Confirm } from "../parts/rollout-dialog.tsx";
import { Why } from "../parts/why.tsx";
import { nodeTone } from "./fleet.tsx";
import { PodTable } from "./pods.tsx";

export function NodePage({ place }: { readonly place: PageLocation }) {
  const app = useApp();
  const live = useTables();
  const [, name = ""] = place.path;
  const row = live.row("nodes", name);
  const pods = live.rows("pods").filter(({ node }) => node === name);
  const changed = row === undefined ? "" : `${row.state} ${row.message} ${row.cordoned} ${row.drain}`;
  const { answer, error } = useCall<{ nodes?: readonly WireNode[] }>("listNodes", { name }, [changed]);
  const node = answer?.nodes?.find((each) => each.name === name);
  const [draining, setDraining] = useState(false);
  const cordon = (unschedulable: boolean): void => {
    call("updateNode", { name, unschedulable }).then(
      () => app.notify(unschedulable ? `${name} gets no new pods.` : `${name} takes pods again.`),
      (cause: unknown) => app.notify(asApiError(cause).message, "bad"),
    );
  };
  return (
    <>
      <Head
        title={name}
        about={row && <Badge tone={nodeTone(row)}>{[row.state, row.drain].filter(Boolean).join(", ")}</Badge>}
      >
        {row !== undefined && may(app, "admin", "") && (
          <>
            <button type="button" onClick={() => cordon(!row.cordoned)}>
              {row.cordoned ? "Uncordon" : "Cordon"}
            </button>
            <button type="button" class="danger" onClick={() => setDraining(true)}>
              Drain…
            </button>
          </>
        )}
      </Head>
      <Failure error={error} />
      {row !== undefined && (
        <section class="card meters" aria-label="Resources">
          <span>
            CPU requested{" "}
            <Bar
              part={row.cpu[0]}
              whole={row.cpu[1]}
              label="CPU"
              text={`${cores(row.cpu[0])} of ${cores(row.cpu[1])} cores`}
            />
          </span>
          <span>
            Memory requested{" "}
            <Bar
              part={row.memory[0]}
              whole={row.memory[1]}
              label="Memory"
              text={`${bytes(row.memory[0])} of ${bytes(row.memory[1])}`}
            />
          </span>
          <span>
            Pods{" "}
            <Bar part={row.pods} whole={row.maxPods} label="Pods" text={`${row.pods} of ${row.maxPods}`} />
          </span>
          {row.usage !== undefined && (
            <span>
              Used by the host
              <Bar
                part={row.usage[0]}
                whole={row.cpu[1]}
                label="Used"
                text={`${cores(row.usage[0])} cores, ${bytes(row.usage[1])}`}
              />
            </span>
          )}
        </section>
      )}
      <Why namespace="" kind="node" name={name} changed={changed} />
      <UsageGraphs of={{ node: name }} />
      {node !== undefined && <Details node={node} />}
      <h2>Pods</h2>
      <PodTable pods={pods} empty="No pod is on this node." />
      {draining && <DrainDialog name={name} onClose={() => setDraining(false)} />}
    </>
  );
}

function Details({ node }: { readonly node: WireNode }) {
  const { report = {} } = node;
  return (
    <section class="card">
      <h2>Details</h2>
      <dl class="fields">
        <Field name="Address">{report.address}</Field>
        <Field name="System">
          {report.os} · kernel {report.kernel} · containerd {report.containerdVersion}
        </Field>
        <Field name="Joined">{dateTime(node.joinedAt)}</Field>
        <Field name="Last heartbeat">{ago(node.lastSeenAt)}</Field>
        <Field name="Certificate">until {dateTime(node.certificateEnds)}</Field>
        {node.gateway && (
          <Field name="Gateway">
            {node.gateway.name} {node.gateway.ready ? "ready" : node.gateway.message}{" "}
            {node.gateway.proxyVersion}
          </Field>
        )}
        <Field name="Taints">
          {(node.taints ?? [])
            .map(({ key, value, effect }) => `${key}=${value ?? ""}:${effect}`)
            .join(", ") || "none"}
        </Field>
        <Field name="Labels">
          {Object.entries(node.labels ?? {})
            .map(([key, value]) => `${key}=${value}`)
            .join(", ") || "none"}
        </Field>
      </dl>
      <ul class="plain-list">
        {(report.conditions ?? []).map((condition) => (
          <li key={condition.type}>
            <strong>{condition.type}</strong> {condition.status ? "true" : "false"} {condition.reason}{" "}
            <span class="quiet">{condition.message}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/**
 * Shows how a drain would affect each workload, by a dry run on a copy of the fleet, before the
 * drain begins.
 */
function DrainDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const app = useApp();
  const [outcome, setOutcome] = useState<WhatIfAnswer>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    call<WhatIfAnswer>("whatIf", { suppositions: [{ drainNode: name }] }).then(setOutcome, (cause: unknown) =>
      setError(asApiError(cause)),
    );
  }, [name]);
  const drain = (): void => {
    call("drainNode", { name, uncordonOnReturn: false }).then(
      () => {
        app.notify(`${name} is drained: its pods leave it as their workloads can spare them.`);
        onClose();
      },
      (cause: unknown) => setError(asApiError(cause)),
    );
  };
  return (
    <Dialog title={`Drain ${name}`} onClose={onClose}>
      <Failure error={error} />
      {outcome === undefined && error === undefined && (
        <p role="status">The coordinator prepares a preview…</p>
      )}
      {outcome !== undefined && <Outcome outcome={outcome} />}
      <div class="actions">
        <Confirm
          verb={`Drain ${name}`}
          isReady={outcome !== undefined}
          hasFailed={error !== undefined}
          onConfirm={drain}
          tone="danger"
        />
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

function Outcome({ outcome }: { readonly outcome: WhatIfAnswer }) {
  const workloads = outcome.workloads ?? [];
  return (
    <>
      <p>
        <Badge tone={outcome.safe ? "good" : "bad"}>
          {outcome.safe
            ? "Every pod finds a node, and no service falls below its minimum."
            : "Pods would wait for a node, or a service would fall below its minimum."}
        </Badge>
      </p>
      {workloads.length === 0 && <p>No workload is affected.</p>}
      <ul class="plain-list">
        {workloads.map((workload) => (
          <li key={`${workload.namespace}/${workload.kind}/${workload.name}`}>
            <strong>
              {workload.namespace}/{workload.name}
            </strong>{" "}
            ready {workload.readyBefore ?? 0} → at worst {workload.readyLowest ?? 0} →{" "}
            {workload.readyAfter ?? 0}
            {workload.minimum !== undefined && ` (minimum ${workload.minimum})`}
            {(workload.came ?? []).map(({ node, pods }) => (
              <div class="quiet" key={node}>
                {pods} to {node}
              </div>
            ))}
            {(workload.waiting ?? []).map(({ pods, why }) => (
              <div class="badge bad" key={why}>
                {pods} would wait: {why}
              </div>
            ))}
          </li>
        ))}
      </ul>
      {(outcome.notes ?? []).map((note) => (
        <p class="quiet" key={note}>
          {note}
        </p>
      ))}
    </>
  );
}
