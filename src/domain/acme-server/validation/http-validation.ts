/** Validates http-01 challenges (RFC 8555 §8.3), with the limits for redirects that Boulder has. */
import { isIP } from 'node:net';
import { shortened } from '../../../base/printable-text.ts';
import { type ValidationResponse, validationGet } from '../../../net/validation-connection.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { reach } from './reach.ts';
import { baseName, type ChallengeToValidate, type ValidationContext } from './validation-context.ts';

const maxRedirects = 10;
const maxLocationLength = 2000;
/** A key authorization has about 90 bytes; servers add line ends. */
const maxBytes = 256;
/** As Boulder has it: 303 answers a form. */
const redirects = new Set([301, 302, 307, 308]);

/** Throws AcmeProblem unless a server of the identifier answers with the key authorization. */
export async function validateHttp(
  context: ValidationContext,
  challenge: ChallengeToValidate,
  signal: AbortSignal,
): Promise<void> {
  const host = baseName(challenge.identifier);
  const origin = `http://${isIP(host) === 6 ? `[${host}]` : host}`;
  let url = new URL(`/.well-known/acme-challenge/${challenge.token}`, origin);
  const seen = new Set<string>();
  for (;;) {
    seen.add(url.href);
    const { result, at } = await get(context, url, signal);
    const { status, location } = result;
    if (!redirects.has(status)) {
      check(result, challenge, { url, at });
      return;
    }
    if (seen.size > maxRedirects) {
      throw new AcmeProblem('connection', `more than ${maxRedirects} redirects, the last to ${shown(url)}`);
    }
    url = redirected(url, location, host);
    if (seen.has(url.href)) throw new AcmeProblem('connection', `redirect loop at ${shown(url)}`);
  }
}

function get(context: ValidationContext, url: URL, signal: AbortSignal) {
  const { world, validation } = context;
  const { guard, ports, userAgent } = validation;
  const isSecure = url.protocol === 'https:';
  // Only 80 and 443 come here, which tests have elsewhere.
  const port =
    url.port === '' ? (isSecure ? ports.tls : ports.http) : ports[url.port === '80' ? 'http' : 'tls'];
  const host = hostIn(url);
  const request = {
    host,
    isSecure,
    path: `${url.pathname}${url.search}`,
    userAgent,
    maxBytes,
  };
  return reach(context, { host, port, what: shown(url) }, signal, (at) =>
    validationGet({ world, guard }, at, request, signal),
  );
}

/** Where a redirect leads. Throws AcmeProblem where validation does not go. */
function redirected(from: URL, location: string | undefined, identifier: string): URL {
  if (location === undefined)
    throw new AcmeProblem('connection', `${shown(from)} redirects without a Location`);
  const text = shortened(location, 200);
  const refuse = (why: string) =>
    new AcmeProblem('connection', `${shown(from)} redirects to ${text}, ${why}`);
  const url = location.length > maxLocationLength ? null : URL.parse(location, from.href);
  if (url === null) throw refuse('which is not a URL');
  if (!['http:', 'https:'].includes(url.protocol)) throw refuse('which is neither http nor https');
  if (!['', '80', '443'].includes(url.port)) throw refuse('which is neither on port 80 nor on port 443');
  const host = hostIn(url).replace(/\.$/, '');
  if (isIP(host) !== 0 && host !== identifier) throw refuse('which is an address instead of a name');
  if (host === '') throw refuse('which has no host');
  url.hash = '';
  return url;
}

function check(
  { status, body, isCut }: ValidationResponse,
  { keyAuthorization, identifier }: ChallengeToValidate,
  { url, at }: { readonly url: URL; readonly at: string },
): void {
  const where = `${shown(url)} (${at})`;
  if (status !== 200) throw new AcmeProblem('unauthorized', `${where} answered with status ${status}`);
  const text = body.toString('latin1').trimEnd();
  if (!isCut && text === keyAuthorization) return;
  const length = isCut ? `more than ${maxBytes} bytes` : `${body.length} bytes`;
  // A redirect must not let a client read what servers say that only the vault can reach.
  const isOwn = hostIn(url) === baseName(identifier);
  const answer = isOwn ? `${JSON.stringify(shortened(text, 100))} (${length})` : length;
  throw new AcmeProblem('incorrectResponse', `${where} answered ${answer} instead of the key authorization`);
}

function hostIn({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function shown(url: URL): string {
  return shortened(`${url.protocol}//${url.host}${url.pathname}${url.search}`, 300);
}
