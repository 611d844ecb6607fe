/** DNS queries of a validation: they end when it does, and their failures are problems of type `dns`. */
import { DnsProviderError } from '../../../dns/dns-provider.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';

/**
 * The result of a query. Throws AcmeProblem for a failed query, and the reason of the signal if that is aborted first.
 */
export async function lookedUp<T>(query: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([query, aborted]);
  } catch (error) {
    if (error instanceof DnsProviderError) throw new AcmeProblem('dns', error.message, { cause: error });
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
