/** The codes of all errors of this package. They are stable: callers switch on them and documentation names them. */
export const IDENTITY_ERROR_CODES = {
  /** A caller passed a value of the wrong form. This is a defect or a wrong configuration, not an attack. */
  INVALID_ARGUMENT: { retryable: false },
  /** The text is not a join token or an API token. */
  TOKEN_MALFORMED: { retryable: false },
  /** The signing request can't be parsed, isn't signed with its own key, or has a key type that is not allowed. */
  CSR_INVALID: { retryable: false },
  /** A certificate can't be parsed, or isn't of the expected kind. */
  CERTIFICATE_INVALID: { retryable: false },
  /** The private key and the certificate don't match. */
  PAIR_MISMATCH: { retryable: false },
  /** A file with a key is missing, or others can read or change it. */
  FILE_UNSAFE: { retryable: false },
  FILE_MISSING: { retryable: false },
  /** The server presented another authority than the pinned one. Somebody may intercept the connection. */
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

/** The error class of this package. Messages never contain a secret. */
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
