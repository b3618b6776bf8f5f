/** An entry of a log: the name of an event, in kebab-case, and its fields. */
export interface LogEntry {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** Takes the entries of a program. None has prose: its event and fields say all. */
export interface Log {
  debug(entry: LogEntry): void;
  info(entry: LogEntry): void;
  warn(entry: LogEntry): void;
  error(entry: LogEntry): void;
}
