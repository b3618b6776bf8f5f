import type { ResourceRow } from "../../src/dashboard/live/rows.ts";
import { call } from "../data/api.ts";
import { asApiError, may, useApp, useTables } from "../data/app.ts";
import { agoMs, dateTime } from "../data/format.ts";
import { href } from "../data/location.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { TrafficGraphs } from "../parts/graphs.tsx";
import { Badge, Head } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";
import { resourceText } from "./workloads.tsx";

export function NetworkPage() {
  const app = useApp();
  const live = useTables();
  const all = live
    .rows("resources")
    .filter(
      ({ kind, namespace }) =>
        (kind === "service" || kind === "route") && (app.namespace === "" || namespace === app.namespace),
    );
  const { rows, text, setText } = useFilter(all, resourceText);
  return (
    <>
      <Head title="Network" about="Services, routes and certificates">
        <FilterField text={text} setText={setText} label="Filter services and routes" />
      </Head>
      <VirtualTable
        label="Services and routes"
        rows={rows}
        columns={COLUMNS}
        keyOf={({ namespace, kind, name }) => `${namespace}/${kind}/${name}`}
        hrefOf={({ namespace, kind, name }) => href("resources", namespace, kind, name)}
        empty="There are no services and routes here."
      />
      {may(app, "viewer", "") && (
        <>
          <TrafficGraphs />
          <Certificates />
        </>
      )}
    </>
  );
}

function Certificates() {
  const app = useApp();
  const certificates = useTables().rows("certificates");
  const renew = (hostname: string): void => {
    call("renewCertificate", { hostname }).then(
      () => app.notify(`The coordinator orders another certificate for ${hostname}.`),
      (cause: unknown) => app.notify(asApiError(cause).message, "bad"),
    );
  };
  return (
    <section>
      <h2>
        Certificates{" "}
        <small>{app.me.issuer === "" ? "no issuer is configured" : `from ${app.me.issuer}`}</small>
      </h2>
      <ul class="plain-list">
        {certificates.map(({ hostname, state, tone, message, notAfterMs }) => (
          <li key={hostname} class="card line">
            <span>
              <strong>{hostname}</strong> <Badge tone={tone}>{state}</Badge>{" "}
              {notAfterMs > 0 &&
                `until ${dateTime(new Date(notAfterMs).toISOString())} (${agoMs(notAfterMs)})`}{" "}
              <span class="quiet">{message}</span>
            </span>
            {may(app, "admin", "") && (
              <button type="button" onClick={() => renew(hostname)} aria-label={`Renew ${hostname}`}>
                Renew
              </button>
            )}
          </li>
        ))}
      </ul>
      {certificates.length === 0 && <p class="quiet">There are none.</p>}
    </section>
  );
}

const COLUMNS: readonly Column<ResourceRow>[] = [
  { title: "Name", width: "minmax(8rem, 2fr)", cell: ({ name }) => name, sort: ({ name }) => name },
  { title: "Kind", width: "5rem", cell: ({ kind }) => kind, sort: ({ kind }) => kind },
  {
    title: "State",
    width: "minmax(8.5rem, 1fr)",
    cell: ({ tone, kind, endpoints }) => (
      <Badge tone={tone}>
        {kind === "service" ? `${endpoints} ready` : tone === "good" ? "Programmed" : "Not served"}
      </Badge>
    ),
    sort: ({ tone }) => tone,
  },
  {
    title: "Namespace",
    width: "1fr",
    cell: ({ namespace }) => namespace,
    sort: ({ namespace }) => namespace,
    wide: true,
  },
  { title: "Reached at", width: "2fr", cell: ({ about }) => <span title={about}>{about}</span>, wide: true },
  {
    title: "Why",
    width: "2fr",
    cell: ({ message }) => (
      <span class="cut" title={message}>
        {message}
      </span>
    ),
    wide: true,
  },
];
