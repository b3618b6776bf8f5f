import { useState } from "preact/hooks";
import type { Tone } from "../../src/dashboard/live/rows.ts";
import { may, useApp, useCall, useTables } from "../data/app.ts";
import { ago, dateTime } from "../data/format.ts";
import { href, type PageLocation, withQuery } from "../data/location.ts";
import type { ContainerState, PodList, WirePod } from "../data/wire.ts";
import { EventList } from "../parts/event-list.tsx";
import { UsageGraphs } from "../parts/graphs.tsx";
import { Logs } from "../parts/logs.tsx";
import { Badge, Failure, Field, Head, Tabs } from "../parts/pieces.tsx";
import { PodPorts } from "../parts/pod-ports.tsx";
import { TerminalTab } from "../parts/terminal-tab.tsx";
import { Why } from "../parts/why.tsx";

export function PodPage({ place }: { readonly place: PageLocation }) {
  const app = useApp();
  const live = useTables();
  const [, namespace = "", name = ""] = place.path;
  const row = live.row("pods", `${namespace}/${name}`);
  const { answer, error } = useCall<PodList>("listPods", { namespace, name }, [JSON.stringify(row ?? null)]);
  const pod = answer?.pods?.[0] ?? answer?.kept?.[0];
  const tabs = ["overview", "logs", ...(may(app, "editor", namespace) ? ["terminal"] : []), "events"];
  const tab = place.query.get("tab") ?? "overview";
  const containers = (pod?.status?.containers ?? []).flatMap((it) =>
    it.name === undefined ? [] : [it.name],
  );
  const main = pod?.status?.containers?.find(({ init }) => !init)?.name;
  const about = row && (
    <>
      <Badge tone={row.tone}>{row.state}</Badge> in {namespace}
      {row.node !== "" && (
        <>
          {" on "}
          <a href={href("nodes", row.node)}>{row.node}</a>
        </>
      )}
    </>
  );
  return (
    <>
      <Head title={name} about={about ?? (pod?.keptUntil ? "Failed; kept for its logs" : namespace)} />
      <Failure error={error} />
      {answer !== undefined && pod === undefined && <p>The pod is gone.</p>}
      <Tabs
        label="Parts of the pod"
        names={tabs}
        present={tab}
        hrefOf={(each) => withQuery(place, "tab", each === "overview" ? "" : each)}
      />
      {tab === "overview" && pod !== undefined && (
        <Overview pod={pod} changed={JSON.stringify(row ?? null)} />
      )}
      {tab === "logs" && <Logs {...{ namespace, pod: name, containers, main }} />}
      {tab === "terminal" && <TerminalTab {...{ namespace, pod: name, containers, main }} />}
      {tab === "events" && <EventList namespace={namespace} kind="pod" name={name} />}
    </>
  );
}

function Overview({ pod, changed }: { readonly pod: WirePod; readonly changed: string }) {
  const ports = pod.status?.hostPorts ?? [];
  return (
    <>
      <Why namespace={pod.namespace ?? ""} kind="pod" name={pod.name ?? ""} changed={changed} />
      <UsageGraphs of={{ namespace: pod.namespace ?? "", pod: pod.name ?? "" }} />
      {pod.keptUntil === undefined && (
        <PodPorts
          namespace={pod.namespace ?? ""}
          pod={pod.name ?? ""}
          ports={ports.flatMap(({ containerPort }) => containerPort ?? [])}
        />
      )}
      <section class="card">
        <h2>Containers</h2>
        <ul class="plain-list">
          {(pod.status?.containers ?? []).map((container) => (
            <Container key={container.name} container={container} />
          ))}
        </ul>
      </section>
      <section class="card">
        <h2>Details</h2>
        <dl class="fields">
          <Field name="Workload">
            <a href={href("resources", pod.namespace ?? "", pod.workloadKind ?? "", pod.workloadName ?? "")}>
              {pod.workloadKind}/{pod.workloadName}
            </a>
          </Field>
          <Field name="Address">{pod.status?.podIp ?? "none"}</Field>
          {ports.length > 0 && (
            <Field name="Host ports">
              {ports.map(({ hostPort, containerPort }) => `${hostPort} → ${containerPort}`).join(", ")}
            </Field>
          )}
          <Field name="Created">
            {dateTime(pod.createdAt)} ({ago(pod.createdAt)})
          </Field>
          <Field name="UID">
            <code>{pod.uid}</code>
          </Field>
          <Field name="Labels">
            {Object.entries(pod.labels ?? {})
              .map(([key, value]) => `${key}=${value}`)
              .join(", ") || "none"}
          </Field>
        </dl>
      </section>
    </>
  );
}

function Container({ container }: { readonly container: ContainerState }) {
  const [tone, word, about] = stateOf(container);
  const last = container.lastTermination;
  const [open, setOpen] = useState(false);
  return (
    <li>
      <p>
        <strong>{container.name}</strong> <Badge tone={tone}>{word}</Badge>{" "}
        {container.init && <small>init container</small>} <small>{container.image}</small>
      </p>
      {about !== "" && <p class="quiet">{about}</p>}
      {last !== undefined && (
        <p class="quiet">
          Restarted {container.restartCount} times. Last end: {last.reason} with exit code{" "}
          {last.exitCode ?? 0}, {ago(last.finishedAt)}.{" "}
          {last.message && (
            <button type="button" onClick={() => setOpen(!open)} aria-expanded={open}>
              Its last lines
            </button>
          )}
        </p>
      )}
      {open && <pre>{last?.message}</pre>}
    </li>
  );
}

function stateOf({ waiting, running, terminated, ready }: ContainerState): readonly [Tone, string, string] {
  if (waiting !== undefined) return ["busy", waiting.reason ?? "Waiting", waiting.message ?? ""];
  if (running !== undefined)
    return [ready ? "good" : "busy", ready ? "Ready" : "Running", `Started ${ago(running.startedAt)}`];
  if (terminated === undefined) return ["busy", "Starting", ""];
  const code = terminated.exitCode ?? 0;
  return [code === 0 ? "off" : "bad", terminated.reason ?? "Ended", `Exit code ${code}`];
}
