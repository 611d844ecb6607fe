/** Words of shell commands that messages print, ready to paste. */

/** The text quoted as one shell word. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9@%+=:,./_-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
