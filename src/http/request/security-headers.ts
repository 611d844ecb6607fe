/**
 * What every answer tells browsers, whoever makes it: to guess no types, to show it in no frame, to name the vault to
 * nobody, and to let no other site have it. There are no CORS headers, and the vault does not say what serves it.
 */

/**
 * Sent with each answer; objects that never change, so that they cost a request nothing. An answer that is no page needs
 * nothing from anywhere; the console's page has a policy of its own, in place of this one.
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
 * The same where strangers trust the certificate that the vault itself serves: browsers shall insist on HTTPS for a year
 * (RFC 6797), at this host alone, since other services may be at its subdomains. Where only some trust it, an exception
 * that a person makes must stay possible.
 */
export const strictSecurityHeaders = Object.freeze({
  ...securityHeaders,
  'Strict-Transport-Security': 'max-age=31536000',
});

/** What the console's page needs: scripts and styles of the vault itself, none of them inline. */
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
