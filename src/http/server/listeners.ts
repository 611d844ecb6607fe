/** All listeners of a vault: they start together or not at all, and stop together. */
import type { IncomingMessage } from 'node:http';
import type { ListenAddress, ListenOption } from '../../net/listening.ts';
import type { Route } from '../request/route.ts';
import { acmeChallengeRoutes } from '../routes/acme-challenge-routes.ts';
import type { ConsoleReply } from '../routes/console-routes.ts';
import { crlRoutes } from '../routes/crl-routes.ts';
import { metricsRoutes } from '../routes/metrics-routes.ts';
import { startTlsAlpnListener } from '../tls/tls-alpn-listener.ts';
import type { TlsEndpoint } from '../tls/tls-endpoint.ts';
import { redirectReply } from './https-redirect.ts';
import type { ListenerContext } from './listener-context.ts';
import { type RunningServer, startServer } from './server.ts';

export type ListenSettings = {
  readonly listen: ListenAddress;
  /** HTTPS on the main listener. */
  readonly tls?: TlsEndpoint | undefined;
  /** An additional address for http-01 challenges and CRLs; with HTTPS, everything else is redirected there. */
  readonly acmeHttpListen: ListenAddress | undefined;
  readonly acmeTlsListen: ListenAddress | undefined;
  /** An additional address for /metrics. */
  readonly metricsListen?: ListenAddress | undefined;
};

const metricsOption: ListenOption = { option: '--metrics-listen', example: '127.0.0.1:9464' };

const acmeHttpOption: ListenOption = { option: '--acme-http-listen', example: '0.0.0.0:80' };

/**
 * Starts every configured listener; the URL is that of the main one. Throws OperatorError if an address is unavailable.
 */
export async function startListeners(
  context: ListenerContext,
  routes: readonly Route[],
  { listen, tls, acmeHttpListen, acmeTlsListen, metricsListen }: ListenSettings,
  pages?: ConsoleReply,
): Promise<RunningServer> {
  const { vault } = context;
  const started: ((patience: number) => Promise<void>)[] = [];
  const stop = async (patience: number) => {
    await Promise.all(started.map((stopOne) => stopOne(patience)));
  };
  try {
    const main = await startServer(context, routes, listen, {
      ...(pages !== undefined && { pages }),
      tls: tls && { endpoint: tls },
    });
    started.push(main.stop);
    if (acmeHttpListen !== undefined) {
      const named = acmeHttpOption;
      const target = { publicUrl: context.publicUrl, httpsPort: portOf(main.url) };
      const redirect = (request: IncomingMessage) => redirectReply(target, request);
      const elsewhere = tls === undefined ? {} : { pages: redirect, pagesAre: 'redirect to HTTPS' };
      const plainRoutes = [...acmeChallengeRoutes, ...crlRoutes];
      const http = await startServer(context, plainRoutes, acmeHttpListen, { named, ...elsewhere });
      started.push(http.stop);
      vault.log.info({ url: http.url }, 'listening for http-01 challenges');
    }
    if (acmeTlsListen !== undefined) {
      const alpn = await startTlsAlpnListener(vault, acmeTlsListen);
      started.push(alpn.stop);
      vault.log.info({ address: alpn.address }, 'listening for tls-alpn-01 challenges');
    }
    if (metricsListen !== undefined) {
      const metrics = await startServer(context, metricsRoutes, metricsListen, { named: metricsOption });
      started.push(metrics.stop);
      vault.log.info({ url: `${metrics.url}/metrics` }, 'listening for metrics');
    }
    return { url: main.url, stop };
  } catch (error) {
    await stop(0);
    throw error;
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port || 443);
}
