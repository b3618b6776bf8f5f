import type { Object as ApiObject } from "@forage/proto/forage/operator/v1/operator";
import type { Paint } from "../output/paint.ts";
import { plainText } from "../output/plain-text.ts";
import { type Entry, renderEntries, renderSection } from "../output/sections.ts";
import { renderTable } from "../output/table.ts";
import { labelText } from "./nodes.ts";
import type { ObjectKind } from "./object-kinds.ts";
import { dataSizes, objectColumns } from "./objects.ts";
import { age, dateTime, type WireTime } from "./timestamp.ts";

/** Describes one object with its keys and sizes, and with its values if `values` contains them. */
export function describeObject(
  kind: ObjectKind,
  object: ApiObject,
  {
    nowMs,
    paint,
    values,
  }: { readonly nowMs: number; readonly paint: Paint; readonly values?: ApiObject | undefined },
): string {
  const since = (time: WireTime | undefined): string =>
    time === undefined ? "" : `${dateTime(time)} (${age(time, nowMs)} ago)`;
  const own = objectColumns(kind, { nowMs, withNamespace: false })
    .filter(({ title }) => !["NAME", "USED BY", "AGE", "CHANGED", "VERSION", "LABELS"].includes(title))
    .map(({ title, value }): Entry => [`${title[0]}${title.slice(1).toLowerCase()}`, value(object)]);
  const password = values?.spec?.$case === "registryCredential" ? values.spec.value.password : "";
  const head = renderEntries(
    [
      ["Name", object.name],
      ["Namespace", object.namespace],
      ...own,
      ["Password", password],
      ["Labels", labelText(object.labels)],
      ["Created", since(object.createdAt)],
      ["Changed", since(object.updatedAt)],
      ["Version", object.version.slice(0, 12)],
    ],
    paint,
  );
  return (
    head +
    renderSection("Data", dataTable(values ?? object, values !== undefined, paint), paint) +
    renderSection("Used by", object.usedBy.map((name) => plainText(name)).join("\n"), paint)
  );
}

function dataTable(object: ApiObject, withValues: boolean, paint: Paint): string {
  const rows = dataSizes(object);
  if (rows.length === 0) return "";
  const { spec } = object;
  const data = spec?.$case === "secret" || spec?.$case === "configMap" ? spec.value.data : {};
  const shown = withValues || spec?.$case === "configMap";
  return renderTable(
    [
      { title: "KEY", value: ([key]) => key },
      { title: "BYTES", value: ([, bytes]) => String(bytes), alignRight: true },
      ...(shown ? [{ title: "VALUE", value: ([key]: (typeof rows)[number]) => valueText(data[key]) }] : []),
    ],
    rows,
    { wide: false, paint },
  );
}

/** Returns a text on one line, or a remark for other data. */
function valueText(value: Uint8Array | undefined): string {
  if (value === undefined) return "";
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(value);
  } catch {
    return "(not text; --key prints it)";
  }
}
