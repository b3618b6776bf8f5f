/** The codes of all errors of this package. They are stable: callers switch on them and documentation names them. */
export const IDENTITY_ERROR_CODES = {
  /** A caller passed a value of the wrong form; a defect or bad configuration, not an attack. */
  INVALID_ARGUMENT: { retryable: false },
  /** The text is not a join token or an API token. */
  TOKEN_MALFORMED: { retryable: false },
  /** The signing request can't be read, isn't signed by its own key, or has a key type we refuse. */
  CSR_INVALID: { retryable: false },
  /** A certificate can't be read, or isn't the kind that was expected. */
  CERTIFICATE_INVALID: { retryable: false },
  /** Private key and certificate don't belong together. */
  PAIR_MISMATCH: { retryable: false },
  /** A file that holds a key can be read or changed by others, or isn't there. */
  FILE_UNSAFE: { retryable: false },
  FILE_MISSING: { retryable: false },
  /** The server showed another authority than the pinned one. Somebody may be in the middle. */
  PIN_MISMATCH: { retryable: false },
  /** The server's chain doesn't lead to a self-signed root. */
  NO_ROOT_PRESENTED: { retryable: false },
  CONNECT_FAILED: { retryable: true },
  TIMEOUT: { retryable: true },
  ABORTED: { retryable: false },
  /** The listening socket could not be opened. */
  LISTEN_FAILED: { retryable: true },
} as const;

export type IdentityErrorCode = keyof typeof IDENTITY_ERROR_CODES;

/** The one error of this package. Its message never holds a secret. */
export class IdentityError extends Error {
  override readonly name = "IdentityError";
  readonly code: IdentityErrorCode;

  constructor(code: IdentityErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  get retryable(): boolean {
    return IDENTITY_ERROR_CODES[this.code].retryable;
  }
}
