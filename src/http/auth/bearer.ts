/** The credentials of `Authorization: Bearer …` (RFC 6750 §2.1). */

/** The token, or undefined if the header is missing, malformed or of another scheme. */
export function readBearer(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  return /^bearer +([A-Za-z0-9._~+/-]+=*)[ \t]*$/i.exec(header)?.[1];
}
