/** Whether `vault serve` runs, and says of itself that it is ready. */
import { second } from '../../base/duration.ts';
import type { Finding } from '../../domain/doctor/finding.ts';
import { type Outbound, OutboundError, type OutboundResponse } from '../../net/outbound-http.ts';
import type { Settings } from '../settings/settings.ts';

const check = 'serving';

/** Where the server is, as far as the settings tell. */
export function serverUrl({ publicUrl, listen, tls }: Settings): string {
  if (publicUrl !== undefined) return publicUrl;
  const every: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const host = every[listen.host] ?? listen.host;
  const written = host.includes(':') ? `[${host}]` : host;
  return `${tls === undefined ? 'http' : 'https'}://${written}:${listen.port}`;
}

/** Asks the server at `base`, whose certificate may also come from the CA with this root. */
export async function serverFinding(
  outbound: Outbound,
  base: string,
  root: string | undefined,
): Promise<Finding> {
  const hint = 'Start it with "vault serve", or say where it is with --url.';
  try {
    const { status, body } = await readiness(outbound, base, root);
    const failed = failedChecks(body);
    if (failed === undefined) {
      return {
        check,
        status: 'failed',
        message: `what answers at ${base} (status ${status}) is no vault`,
        hint,
      };
    }
    if (status === 200) return { check, status: 'ok', message: `${base} is ready` };
    const message = `${base} is not ready: ${failed.join(', ')}`;
    return { check, status: 'failed', message, hint: 'See the log of "vault serve" for the cause.' };
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    if (error.reason === 'untrusted') {
      const where =
        'Say with --url (or --public-url) by which name clients find it, and see that they trust its CA.';
      return { check, status: 'warning', message: `${base} answers, but ${error.message}`, hint: where };
    }
    return { check, status: 'failed', message: `the vault is not served: ${error.message}`, hint };
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
    const isStranger = error instanceof OutboundError && error.reason === 'untrusted';
    if (!isStranger || root === undefined) throw error;
    return outbound({ ...request, ca: root });
  }
}

/** The checks of a readiness answer that failed, or undefined where it is none. */
function failedChecks(body: Buffer): string[] | undefined {
  try {
    const { checks } = JSON.parse(body.toString()) as { checks?: Record<string, string> };
    return checks && Object.keys(checks).filter((name) => checks[name] !== 'ok');
  } catch {
    // Something that speaks no JSON is no vault.
    return undefined;
  }
}
