/** A log entry: the name of an event, in kebab-case, and its fields. */
export interface LogEntry {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** Writes the log entries of a program. They contain no prose, only an event and fields. */
export interface Log {
  debug(entry: LogEntry): void;
  info(entry: LogEntry): void;
  warn(entry: LogEntry): void;
  error(entry: LogEntry): void;
}
