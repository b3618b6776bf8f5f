/** Writes one line of the plugin's log: a kebab-case event with its fields. */
export type DriverLog = (
  level: "debug" | "info" | "warn" | "error",
  event: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;
