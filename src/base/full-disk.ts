/** How Node and SQLite report a full disk or an exceeded quota. */

/** The number of EDQUOT, which Node has no name for: on Linux, and on macOS and the BSDs. */
const quota = /^Unknown system error -(122|69)$/;

/** The message of a system error, with words for EDQUOT, which Node does not describe. */
export function wordsOf(error: unknown): string {
  return String((error as Error).message).replace(
    /^(Unknown system error -(?:122|69)): \1/,
    'EDQUOT: disk quota exceeded',
  );
}

/** Whether the error means that there is no space left. */
export function isNoSpaceError(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && (/^(SQLITE_FULL|ENOSPC|EDQUOT|EFBIG)$/.test(code) || quota.test(code));
}
