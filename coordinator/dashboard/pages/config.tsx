import { useState } from "preact/hooks";
import { call } from "../data/api.ts";
import { asApiError, listedNamespace, may, useApp, useCall } from "../data/app.ts";
import { ago, bytes, plural } from "../data/format.ts";
import type { WireObject } from "../data/wire.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { Dialog, Failure, Head } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";

/** Secrets, config maps and the like: names and sizes. Values of secrets are shown only on demand, to those who may. */
export function ConfigPage() {
  const app = useApp();
  const namespace = listedNamespace(app);
  const { answer, error } = useCall<{ objects?: readonly WireObject[] }>("listObjects", { namespace });
  const { rows, text, setText } = useFilter(
    answer?.objects ?? [],
    (it) => `${it.namespace}/${it.name} ${kindOf(it)}`,
  );
  const [shown, setShown] = useState<{
    readonly object: WireObject;
    readonly values: Readonly<Record<string, string>>;
  }>();
  const reveal = (object: WireObject): void => {
    const kind = object.secret === undefined ? "registry_credential" : "secret";
    call<{ object?: WireObject }>("revealObject", {
      namespace: object.namespace,
      kind,
      name: object.name,
    }).then(
      (found) => setShown({ object, values: valuesOf(found.object) }),
      (cause: unknown) => app.notify(asApiError(cause).message, "bad"),
    );
  };
  const columns: readonly Column<WireObject>[] = [
    ...COLUMNS,
    {
      title: "Values",
      width: "6rem",
      cell: (object) =>
        isSecret(object) &&
        may(app, "editor", object.namespace ?? "") && (
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
      <Failure error={error} />
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

function isSecret({ secret, registryCredential }: WireObject): boolean {
  return secret !== undefined || registryCredential !== undefined;
}

function kindOf(object: WireObject): string {
  if (object.secret) return "secret";
  if (object.configMap) return "config map";
  if (object.registryCredential) return "registry credential";
  return object.claim ? "claim" : "priority class";
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
    return `${content.length} bytes that are no text, in base64: ${base64}`;
  }
}

function aboutOf({ secret, configMap, registryCredential, claim, priorityClass }: WireObject): string {
  const sizes = secret?.sizes ?? configMap?.sizes;
  if (sizes !== undefined)
    return Object.entries(sizes)
      .map(([key, size]) => `${key} (${bytes(size)})`)
      .join(", ");
  if (registryCredential !== undefined) return `${registryCredential.username}@${registryCredential.server}`;
  if (claim !== undefined) return `${claim.capacity ?? "no limit"} on ${claim.node || "no node yet"}`;
  return `${priorityClass?.value ?? 0} ${priorityClass?.description ?? ""}`;
}

const COLUMNS: readonly Column<WireObject>[] = [
  { title: "Name", width: "minmax(8rem, 2fr)", cell: ({ name }) => name, sort: ({ name }) => name ?? "" },
  { title: "Kind", width: "minmax(9rem, 1fr)", cell: kindOf, sort: kindOf },
  {
    title: "Namespace",
    width: "1fr",
    cell: ({ namespace }) => namespace,
    sort: ({ namespace }) => namespace ?? "",
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
  { title: "Used by", width: "6rem", cell: ({ usedBy }) => plural(usedBy?.length ?? 0, "pod"), wide: true },
  { title: "Changed", width: "7rem", cell: ({ updatedAt }) => ago(updatedAt), wide: true },
];
