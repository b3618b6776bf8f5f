import { LEFT_OUT } from "./scrub-text.ts";

/** The form in which a setting is shown: its value, the origin of its URL, or a note that it was left out. */
export type SettingMark = "shown" | "origin" | "left-out";

/** The marks of all settings. A group, or a list of groups, has the marks of its settings. */
export type SettingMarks<Settings> = {
  readonly [Key in keyof Settings]-?: MarkOf<Exclude<Settings[Key], undefined>>;
};

/** A group with arbitrary keys, such as labels, has one mark. */
type MarkOf<Value> = Value extends readonly (infer Item)[]
  ? MarkOf<Item>
  : Value extends object
    ? string extends keyof Value
      ? SettingMark
      : SettingMarks<Value>
    : SettingMark;

/** Returns the settings without the values that are not marked as shown. A setting without a mark is left out. */
export function showSettings<Settings extends object>(
  settings: Settings,
  marks: SettingMarks<Settings>,
): Readonly<Record<string, unknown>> {
  return showGroup(settings, marks);
}

function showGroup(group: object, marks: object): Readonly<Record<string, unknown>> {
  const byKey = new Map<string, unknown>(Object.entries(marks));
  return Object.fromEntries(
    Object.entries(group).map(([key, value]) => [key, showValue(value, byKey.get(key))]),
  );
}

function showValue(value: unknown, mark: unknown): unknown {
  if (value === undefined || mark === "shown") return value;
  if (Array.isArray(value)) {
    return mark === undefined || mark === "left-out"
      ? `${value.length} left out`
      : value.map((item) => showValue(item, mark));
  }
  if (mark === "origin") return typeof value === "string" ? (URL.parse(value)?.origin ?? LEFT_OUT) : LEFT_OUT;
  const isGroup = typeof value === "object" && value !== null && typeof mark === "object" && mark !== null;
  return isGroup ? showGroup(value, mark) : LEFT_OUT;
}
