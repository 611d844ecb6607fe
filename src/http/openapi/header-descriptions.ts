/** What the headers of answers say, for the API document. */

const headerDescriptions: Readonly<Record<string, string>> = {
  'X-Request-Id': 'id of this request in the log and the audit log',
  Allow: 'allowed methods',
  'Certificate-Version': 'version number, for `?version=`',
  'Content-Disposition': 'a file name that is safe on all systems',
  ETag: 'strong entity tag of the content, for `If-None-Match`',
  Link: 'the next page, if there is one; in ACME, related resources',
  Location: "URL of the renewal's status; in ACME, of the account or order",
  'Replay-Nonce': 'the nonce of the next request (RFC 8555 §6.5.1)',
  'Set-Cookie': 'sets or clears the session cookie',
  Vary: 'request headers that the response depends on',
  'Retry-After': 'seconds to wait before retrying',
  'WWW-Authenticate': 'Bearer',
};

/** The OpenAPI headers of these names. */
export function headers(names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    names.map((name) => [name, { description: headerDescriptions[name], schema: { type: 'string' } }]),
  );
}
