export interface StateOptions {
  /** Takes the error of a listener, after the others were called. Default: it is thrown. */
  readonly onListenerError?: (error: unknown) => void;
  /** Takes the error of a record that can't be read and is left out (see `unreadable`). Default: it is thrown. */
  readonly onUnreadable?: (key: string, error: unknown) => void;
}
