/** How Node and SQLite say that a disk is full, or what somebody may have of it. */

/** The number of EDQUOT, which Node has no name for: Linux's, and that of macOS and the BSDs. */
const quota = /^Unknown system error -(122|69)$/;

/** What an error of the system says, in words also where Node has none. */
export function wordsOf(error: unknown): string {
  return String((error as Error).message).replace(
    /^(Unknown system error -(?:122|69)): \1/,
    'EDQUOT: disk quota exceeded',
  );
}

/** Whether the error says that there is no space left. */
export function isNoSpaceError(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && (/^(SQLITE_FULL|ENOSPC|EDQUOT|EFBIG)$/.test(code) || quota.test(code));
}
