/** Whether `vault serve` runs, and says of itself that it is ready. */
import { second } from '../base/duration.ts';
import { type Outbound, OutboundError } from '../base/outbound-http.ts';
import type { Finding } from '../domain/finding.ts';
import type { Settings } from './settings.ts';

const check = 'serving';

/** Where the server is, as far as the settings tell. */
export function serverUrl({ publicUrl, listen, tls }: Settings): string {
  if (publicUrl !== undefined) return publicUrl;
  const every: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const host = every[listen.host] ?? listen.host;
  const written = host.includes(':') ? `[${host}]` : host;
  return `${tls === undefined ? 'http' : 'https'}://${written}:${listen.port}`;
}

export async function serverFinding(outbound: Outbound, base: string): Promise<Finding> {
  const hint = 'Start it with "vault serve", or say where it is with --url.';
  try {
    const url = `${base}/api/v1/ready`;
    const { status, body } = await outbound({ method: 'GET', url, timeoutMs: 5 * second });
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
      const where = 'Say with --url (or --public-url) by which name clients find it.';
      return { check, status: 'warning', message: `${base} answers, but ${error.message}`, hint: where };
    }
    return { check, status: 'failed', message: `the vault is not served: ${error.message}`, hint };
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
