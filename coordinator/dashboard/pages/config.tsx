import { useState } from "preact/hooks";
import type { ObjectRow } from "../../src/dashboard/live/rows.ts";
import { call } from "../data/api.ts";
import { asApiError, may, useApp, useTables } from "../data/app.ts";
import { agoMs, bytes, plural } from "../data/format.ts";
import type { PageLocation } from "../data/location.ts";
import type { WireObject } from "../data/wire.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { Dialog, Head } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";

/**
 * Lists secrets, config maps and other objects with names and sizes. Values of secrets are shown
 * only on request, to users whose role permits it.
 */
export function ConfigPage({ place }: { readonly place: PageLocation }) {
  const app = useApp();
  const live = useTables();
  const all = live.rows("objects").filter((row) => app.namespace === "" || row.namespace === app.namespace);
  const { rows, text, setText } = useFilter(
    all,
    (it) => `${it.namespace}/${it.name} ${kindOf(it)}`,
    place.query.get("filter") ?? "",
  );
  const [shown, setShown] = useState<{
    readonly object: ObjectRow;
    readonly values: Readonly<Record<string, string>>;
  }>();
  const reveal = (object: ObjectRow): void => {
    const { namespace, kind, name } = object;
    call<{ object?: WireObject }>("revealObject", { namespace, kind, name }).then(
      (found) => setShown({ object, values: valuesOf(found.object) }),
      (cause: unknown) => app.notify(asApiError(cause).message, "bad"),
    );
  };
  const columns: readonly Column<ObjectRow>[] = [
    ...COLUMNS,
    {
      title: "Values",
      width: "6rem",
      cell: (object) =>
        isSecret(object) &&
        may(app, "editor", object.namespace) && (
          <button
            type="button"
            class="small"
            onClick={() => reveal(object)}
            aria-label={`Reveal ${object.name}`}
          >
            Reveal
          </button>
        ),
    },
  ];
  return (
    <>
      <Head title="Secrets and configuration" about={`${plural(rows.length, "object")}, by name`}>
        <FilterField text={text} setText={setText} label="Filter objects" />
      </Head>
      <VirtualTable
        label="Secrets and configuration"
        rows={rows}
        columns={columns}
        keyOf={(it) => `${it.namespace}/${kindOf(it)}/${it.name}`}
        empty="There are none here."
      />
      {shown !== undefined && (
        <Dialog title={`${kindOf(shown.object)} ${shown.object.name}`} onClose={() => setShown(undefined)}>
          <dl class="fields">
            {Object.entries(shown.values).map(([key, value]) => (
              <>
                <dt>{key}</dt>
                <dd>
                  <code>{value}</code>
                </dd>
              </>
            ))}
          </dl>
          <button type="button" onClick={() => setShown(undefined)}>
            Close
          </button>
        </Dialog>
      )}
    </>
  );
}

function isSecret({ kind }: ObjectRow): boolean {
  return kind === "secret" || kind === "registry_credential";
}

function kindOf({ kind }: ObjectRow): string {
  return kind.replaceAll("_", " ");
}

function valuesOf(object: WireObject | undefined): Readonly<Record<string, string>> {
  const { secret, registryCredential } = object ?? {};
  if (registryCredential !== undefined) return { password: registryCredential.password ?? "" };
  return Object.fromEntries(Object.entries(secret?.data ?? {}).map(([key, value]) => [key, decoded(value)]));
}

function decoded(base64: string): string {
  const content = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return `${content.length} bytes that are not text, in base64: ${base64}`;
  }
}

function aboutOf({ sizes, about }: ObjectRow): string {
  if (sizes === undefined) return about;
  return Object.entries(sizes)
    .map(([key, size]) => `${key} (${bytes(size)})`)
    .join(", ");
}

const COLUMNS: readonly Column<ObjectRow>[] = [
  { title: "Name", width: "minmax(8rem, 2fr)", cell: ({ name }) => name, sort: ({ name }) => name },
  { title: "Kind", width: "minmax(9rem, 1fr)", cell: kindOf, sort: kindOf },
  {
    title: "Namespace",
    width: "1fr",
    cell: ({ namespace }) => namespace,
    sort: ({ namespace }) => namespace,
    wide: true,
  },
  {
    title: "Content",
    width: "3fr",
    cell: (it) => (
      <span class="cut" title={aboutOf(it)}>
        {aboutOf(it)}
      </span>
    ),
    wide: true,
  },
  { title: "Used by", width: "6rem", cell: ({ usedBy }) => plural(usedBy, "pod"), wide: true },
  { title: "Changed", width: "7rem", cell: ({ updatedMs }) => agoMs(updatedMs), wide: true },
];
