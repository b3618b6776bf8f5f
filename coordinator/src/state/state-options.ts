export interface StateOptions {
  /** Receives the error of a listener after the other listeners were called. Default: it is thrown. */
  readonly onListenerError?: (error: unknown) => void;
  /** Receives the error of a dispensable record that can't be decoded (see `unreadable`). Default: it is thrown. */
  readonly onUnreadable?: (key: string, error: unknown) => void;
}
