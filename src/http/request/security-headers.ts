/**
 * Security headers of every response: no MIME sniffing, no frames, no referrer, and no use by other sites. There are no
 * CORS headers, and no header names the server.
 */

/**
 * Sent with each response; frozen objects, so that they cost nothing per request. Responses other than pages may load
 * nothing; the console page has its own policy instead.
 */
export const securityHeaders = Object.freeze({
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
});

/**
 * The same if the certificate of the vault is publicly trusted: browsers require HTTPS for a year (RFC 6797), only for
 * this host, because subdomains may belong to other services. With a privately trusted certificate, users must still be
 * able to add an exception.
 */
export const strictSecurityHeaders = Object.freeze({
  ...securityHeaders,
  'Strict-Transport-Security': 'max-age=31536000',
});

/** What the console page needs: scripts and styles of the vault itself, none of them inline. */
export const pagePolicy = [
  "default-src 'none'",
  ...[
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
  ],
  ...["form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"],
].join('; ');
