/** How Node and SQLite report a full disk or an exceeded quota. */

/** The number of EDQUOT, which Node has no name for: on Linux, and on macOS and the BSDs. */
const quota = /^Unknown system error -(122|69)$/;

/** Whether the error means that there is no space left. */
export function isNoSpaceError(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && (/^(SQLITE_FULL|ENOSPC|EDQUOT|EFBIG)$/.test(code) || quota.test(code));
}
