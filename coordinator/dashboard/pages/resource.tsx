import { useState } from "preact/hooks";
import type { PodRow, ResourceRow } from "../../src/dashboard/live/rows.ts";
import { call } from "../data/api.ts";
import { asApiError, may, useApp, useCall, useTables } from "../data/app.ts";
import { ago, dateTime } from "../data/format.ts";
import { href, type PageLocation, withQuery } from "../data/location.ts";
import type { ResourceList, RolloutAnswer, WireResource } from "../data/wire.ts";
import { Autoscaling } from "../parts/autoscaling.tsx";
import { EventList } from "../parts/event-list.tsx";
import { Badge, Field, Head, Tabs } from "../parts/pieces.tsx";
import { Revisions } from "../parts/revisions.tsx";
import { RolloutDialog } from "../parts/rollout-dialog.tsx";
import { Why } from "../parts/why.tsx";
import { PodTable } from "./pods.tsx";

export function ResourcePage({ place }: { readonly place: PageLocation }) {
  const live = useTables();
  const [, namespace = "", kind = "", name = ""] = place.path;
  const row = live.row("resources", `${namespace}/${kind}/${name}`);
  const pods = live
    .rows("pods")
    .filter((pod) => pod.namespace === namespace && pod.workload === `${kind}/${name}`);
  const changed = JSON.stringify(row ?? null);
  const { answer } = useCall<ResourceList>("listResources", { namespace, kind, name }, [changed]);
  const resource = answer?.resources?.find((each) => each.kind === kind && each.name === name);
  const tab = place.query.get("tab") ?? "overview";
  const tabs = ["overview", ...(kind === "container_service" ? ["revisions"] : []), "events", "manifest"];
  return (
    <>
      <Head title={name} about={`${kind} in ${namespace}${row?.image ? ` · ${row.image}` : ""}`}>
        {row !== undefined && <Actions row={row} />}
      </Head>
      {answer !== undefined && row === undefined && <p>It is gone.</p>}
      <Tabs
        label="Parts of the resource"
        names={tabs}
        present={tab}
        hrefOf={(each) => withQuery(place, "tab", each === "overview" ? "" : each)}
      />
      {tab === "overview" && row !== undefined && (
        <>
          {pods.length > 0 && <Replicas row={row} pods={pods} />}
          {row.rolloutId !== "" && <Rollout row={row} changed={changed} />}
          <Why namespace={namespace} kind={kind} name={name} changed={changed} />
          {resource !== undefined && <Details resource={resource} />}
          {pods.length > 0 && <PodTable pods={pods} />}
        </>
      )}
      {tab === "revisions" && <Revisions namespace={namespace} kind={kind} name={name} changed={changed} />}
      {tab === "events" && <EventList namespace={namespace} kind={kind} name={name} />}
      {tab === "manifest" && <pre>{JSON.stringify(resource?.spec ?? {}, undefined, 2)}</pre>}
    </>
  );
}

/** Buttons for the actions that apply to the present state of the resource. */
function Actions({ row }: { readonly row: ResourceRow }) {
  const { namespace, kind, name, paused, canary } = row;
  const app = useApp();
  const [isRestarting, setRestarting] = useState(false);
  if (!may(app, "editor", namespace) || row.deleting) return null;
  const run = (method: string, request: object, done: string) => () => {
    call<{ message?: string }>(method, { namespace, ...request }).then(
      ({ message }) => app.notify(message ?? done),
      (error: unknown) => app.notify(asApiError(error).message, "bad"),
    );
  };
  if (kind === "cron_job")
    return (
      <button type="button" onClick={run("runCronJob", { cronJob: name }, "A run has started.")}>
        Run now
      </button>
    );
  if (kind !== "container_service") return null;
  const update = (action: string, done: string) => run("updateRollout", { kind, name, [action]: {} }, done);
  return (
    <>
      {canary && (
        <button type="button" class="primary" onClick={update("promote", "The canary is promoted.")}>
          Promote
        </button>
      )}
      {paused ? (
        <button type="button" onClick={update("resume", "The rollout continues.")}>
          Resume
        </button>
      ) : (
        <button type="button" onClick={update("pause", "The rollout is paused.")}>
          Pause
        </button>
      )}
      <button type="button" onClick={() => setRestarting(true)}>
        Restart…
      </button>
      {isRestarting && (
        <RolloutDialog
          {...{ namespace, kind, name }}
          title={`Restart ${name}`}
          verb="Restart"
          action={{ restart: {} }}
          onClose={() => setRestarting(false)}
        />
      )}
    </>
  );
}

/** The number of stages: placed, pulled, started, ready. */
const STAGE_COUNT = 4;

/** Shows the progress of each replica: placed, pulling its image, starting, ready. */
function Replicas({ row, pods }: { readonly row: ResourceRow; readonly pods: readonly PodRow[] }) {
  const revisions = [...Map.groupBy(pods, ({ revision }) => revision)];
  return (
    <section class="card" aria-label="Replicas">
      <h2>
        Replicas{" "}
        <small>
          {row.ready} of {row.replicas} ready, {row.updated} of the newest revision
        </small>
      </h2>
      {revisions.map(([revision, own]) => (
        <div key={revision}>
          <h3>
            Revision <code>{revision}</code>
          </h3>
          <ul class="replicas">
            {own.map((pod) => (
              <li key={pod.uid}>
                <a href={href("pods", pod.namespace, pod.name)}>{pod.name}</a>
                <Badge tone={pod.tone}>{wordOf(pod)}</Badge>
                <progress
                  max={STAGE_COUNT}
                  value={stageOf(pod) + (pod.pulledPercent ?? 0) / 100}
                  aria-label={`${pod.name}: ${wordOf(pod)}`}
                  title={wordOf(pod)}
                />
                <span class="cut">{pod.message}</span>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}

function wordOf({ state, pulledPercent }: PodRow): string {
  return pulledPercent === undefined ? state : `${state} ${pulledPercent} %`;
}

function stageOf({ node, state, tone }: PodRow): number {
  if (tone === "good") return STAGE_COUNT;
  if (node === "") return 0;
  if (state === "Placed") return 1;
  // The pulled share is added to this stage.
  return state.startsWith("ImagePull") ? 1 : 3;
}

function Rollout({ row, changed }: { readonly row: ResourceRow; readonly changed: string }) {
  const { namespace, kind, name } = row;
  const { answer } = useCall<RolloutAnswer>("getRollout", { resource: { namespace, kind, name } }, [changed]);
  const own = answer?.resources?.find((each) => each.kind === kind && each.name === name);
  if (answer === undefined || own === undefined) return null;
  const word = (own.status ?? "").replace("ROLLOUT_STATUS_", "").toLowerCase().replaceAll("_", " ");
  return (
    <section class="card" aria-label="Rollout">
      <h2>
        Rollout <small>{answer.rolloutId}</small>
      </h2>
      <p>
        <strong>{own.action}</strong> {ago(answer.createdAt)}: {word || "in progress"}
        {own.message && `: ${own.message}`}
      </p>
      {own.now && <p class="quiet">Now: {own.now}</p>}
    </section>
  );
}

function Details({ resource }: { readonly resource: WireResource }) {
  return (
    <>
      {resource.autoscaling !== undefined && (
        <Autoscaling
          namespace={resource.namespace ?? ""}
          name={resource.name ?? ""}
          scaling={resource.autoscaling}
        />
      )}
      {resource.cronJob !== undefined && (
        <Cron cron={resource.cronJob} namespace={resource.namespace ?? ""} />
      )}
      {resource.route !== undefined && <Route route={resource.route} />}
    </>
  );
}

function Cron({
  cron,
  namespace,
}: {
  readonly cron: NonNullable<WireResource["cronJob"]>;
  readonly namespace: string;
}) {
  return (
    <section class="card" aria-label="Schedule">
      <h2>Schedule</h2>
      <dl class="fields">
        <Field name="Schedule">
          <code>{cron.schedule}</code> {cron.timezone} {cron.suspended && "(suspended)"}
        </Field>
        <Field name="Next run">
          {cron.nextAt ? `${dateTime(cron.nextAt)} (${ago(cron.nextAt)})` : "none"}
        </Field>
        <Field name="Last run">{cron.lastScheduledAt ? ago(cron.lastScheduledAt) : "never"}</Field>
        <Field name="Last success">{cron.lastSuccessfulAt ? ago(cron.lastSuccessfulAt) : "never"}</Field>
        <Field name="Running">
          {(cron.active ?? []).map((job) => (
            <a key={job} href={href("resources", namespace, "job", job)}>
              {job}{" "}
            </a>
          ))}
          {(cron.active ?? []).length === 0 && "none"}
        </Field>
      </dl>
    </section>
  );
}

function Route({ route }: { readonly route: NonNullable<WireResource["route"]> }) {
  return (
    <section class="card" aria-label="Route">
      <h2>
        Route <small>gateway {route.gateway}</small>
      </h2>
      <ul class="plain-list">
        {(route.conditions ?? []).map((condition) => (
          <li key={condition.type}>
            <Badge tone={(condition.type === "Conflicted") !== (condition.status ?? false) ? "good" : "bad"}>
              {condition.type}
            </Badge>{" "}
            {condition.reason} <span class="quiet">{condition.message}</span>
          </li>
        ))}
      </ul>
      <ul>
        {(route.hostnames ?? []).map((host) => (
          <li key={host.hostname}>
            <strong>{host.hostname}</strong> {host.tls && `TLS ${host.tls}`} {host.certificate}{" "}
            {host.certificateExpiresAt && <small>until {dateTime(host.certificateExpiresAt)}</small>}
          </li>
        ))}
      </ul>
    </section>
  );
}
