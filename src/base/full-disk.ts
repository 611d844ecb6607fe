/** How Node and SQLite say that a disk is full, or what somebody may have of it. */

/** The number of EDQUOT, which Node has no name for: Linux's, and that of macOS and the BSDs. */
const quota = /^Unknown system error -(122|69)$/;

/** Whether the error says that there is no space left. */
export function saysNoSpace(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && (/^(SQLITE_FULL|ENOSPC|EDQUOT|EFBIG)$/.test(code) || quota.test(code));
}
