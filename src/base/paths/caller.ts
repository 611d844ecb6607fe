/** The user whose rights the vault has. */

/** The effective user id; undefined on systems without POSIX users. */
export function callerUid(): number | undefined {
  return process.geteuid?.();
}
