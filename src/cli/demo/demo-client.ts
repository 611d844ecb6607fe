/** The client of `vault demo`: like the job of install.sh, it downloads what has changed, over HTTP with an API key. */
import { second } from '../../base/duration.ts';
import type { Secret } from '../../base/secret.ts';
import type { LogContext, WorldContext } from '../../domain/contexts.ts';
import type { Outbound } from '../../net/outbound-http.ts';
import { clientCertificates } from './demo-steps.ts';

type ClientContext = WorldContext & LogContext & { readonly outbound: Outbound };

/** How soon the client has a new version, so that people see it happen. */
const interval = 10 * second;

const files = ['fullchain.crt', 'private.key'];

/** Runs until `signal` is aborted. Logs errors and retries. */
export async function runDemoClient(
  { world, log, outbound }: ClientContext,
  { url, apiKey }: { readonly url: string; readonly apiKey: Secret<string> },
  signal: AbortSignal,
): Promise<void> {
  const paths = clientCertificates.flatMap((name) => files.map((file) => `${name}/${file}`));
  const known = new Map<string, string>();
  while (!signal.aborted) {
    try {
      for (const path of paths) {
        const etag = known.get(path);
        const { status, headers } = await outbound({
          method: 'GET',
          url: `${url}/api/v1/certificates/${path}`,
          headers: {
            Authorization: `Bearer ${apiKey.expose()}`,
            ...(etag !== undefined && { 'If-None-Match': etag }),
          },
          signal,
        });
        if (status === 200 && headers.etag !== undefined) known.set(path, headers.etag);
      }
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'download failed; retrying');
    }
    await world.sleep(interval, signal);
  }
}
