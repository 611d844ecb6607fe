/** The doctor's check that the server runs and is ready. */
import { second } from '../../base/duration.ts';
import type { Finding } from '../../domain/doctor/finding.ts';
import { type Outbound, OutboundError, type OutboundResponse } from '../../net/outbound-http.ts';
import type { Settings } from '../settings/settings.ts';

const check = 'serving';

/** The URL of the server according to the settings. */
export function serverUrl({ publicUrl, listen, tls }: Settings): string {
  if (publicUrl !== undefined) return publicUrl;
  const every: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const host = every[listen.host] ?? listen.host;
  const written = host.includes(':') ? `[${host}]` : host;
  return `${tls === undefined ? 'http' : 'https'}://${written}:${listen.port}`;
}

/** Checks the readiness of the server at `base`. Its certificate may come from the private CA with this root. */
export async function serverFinding(
  outbound: Outbound,
  base: string,
  root: string | undefined,
): Promise<Finding> {
  const hint = 'Start it with "vault serve", or set its URL with --url.';
  try {
    const { status, body } = await readiness(outbound, base, root);
    const failed = failedChecks(body);
    if (failed === undefined) {
      return {
        check,
        status: 'failed',
        message: `the server at ${base} is not a vault (status ${status})`,
        hint,
      };
    }
    if (status === 200) return { check, status: 'ok', message: `${base} is ready` };
    const message = `${base} is not ready: ${failed.join(', ')}`;
    return { check, status: 'failed', message, hint: 'Check the log of "vault serve" for the cause.' };
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    if (error.reason === 'untrusted') {
      const where =
        'Use --url or --public-url with the name that clients use, and make sure that they trust its CA.';
      return { check, status: 'warning', message: `${base} answers, but ${error.message}`, hint: where };
    }
    return { check, status: 'failed', message: `the server does not respond: ${error.message}`, hint };
  }
}

async function readiness(
  outbound: Outbound,
  base: string,
  root: string | undefined,
): Promise<OutboundResponse> {
  const request = { method: 'GET', url: `${base}/api/v1/ready`, timeoutMs: 5 * second } as const;
  try {
    return await outbound(request);
  } catch (error) {
    const isUntrusted = error instanceof OutboundError && error.reason === 'untrusted';
    if (!isUntrusted || root === undefined) throw error;
    return outbound({ ...request, ca: root });
  }
}

/** The failed checks in a readiness response; undefined if it is not one. */
function failedChecks(body: Buffer): string[] | undefined {
  try {
    const { checks } = JSON.parse(body.toString()) as { checks?: Record<string, string> };
    return checks && Object.keys(checks).filter((name) => checks[name] !== 'ok');
  } catch {
    // A response without JSON is not from a vault.
    return undefined;
  }
}
