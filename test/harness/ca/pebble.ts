/**
 * Runs Pebble, Let's Encrypt's ACME server for tests, on loopback ports with the given DNS server only. Tests need
 * `needsPebble()`, or `needsPebble('ari')` for a version that supports ARI.
 */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { needs, type Skip } from '../processes/missing-program.ts';
import { type StartedServer, startOnFreePorts } from '../processes/port.ts';
import {
  deadPort,
  type Feature,
  goFolders,
  installedPebble,
  type PebbleConfiguration,
  writeConfiguration,
  writeHttpsFiles,
} from './pebble-files.ts';

export type PebbleOptions = PebbleConfiguration & {
  /** The percentage of valid nonces that it rejects; by default 20. */
  readonly nonceReject?: number;
  /** The number of alternate chains; by default none. */
  readonly alternateRoots?: number;
  /** The percentage of valid authorizations that a new order reuses; by default 50, as in Pebble. */
  readonly authzReuse?: number;
  /** Whether it runs in strict mode; by default yes. */
  readonly strict?: boolean;
  /** `127.0.0.1:PORT`, as returned by `bind()`. Without it no name resolves. */
  readonly dnsServer?: string;
  /** Whether it accepts every challenge without validation; by default no. */
  readonly alwaysValid?: boolean;
};

export type Pebble = Omit<StartedServer, 'ports'> & {
  /** `https://127.0.0.1:PORT/dir` */
  readonly directoryUrl: string;
  /** `https://127.0.0.1:PORT`, with a certificate of the same CA */
  readonly managementUrl: string;
  /** The root of its HTTPS certificate. The root of issued certificates is `root()`. */
  readonly caFile: string;
  readonly caPem: string;
  readonly version: string;
  readonly has: (feature: Feature) => boolean;
  /**
   * Sets the renewal information for one of its certificates, the first of the PEM; null restores the default. A string
   * is sent as the raw body of the response, which may be malformed.
   */
  readonly setRenewalInfo: (certificatePem: string, window: RenewalWindow | string | null) => Promise<void>;
  /** The root of the usual chain (0) or of an alternate one, as PEM. */
  readonly root: (n?: number) => Promise<string>;
};

export type RenewalWindow = { readonly start: Date; readonly end: Date; readonly explanationURL?: string };

/**
 * Options for a test that needs `pebble()`; see `needs()`. The test is also skipped if the installed version does not
 * support the feature.
 */
export function needsPebble(feature?: Feature): Skip {
  const program = installedPebble();
  if (!program) return needs('pebble', goFolders);
  if (feature === undefined || program.features.has(feature)) return {};
  return { skip: `Pebble ${program.version} (${program.path}) has no ${feature}` };
}

/** Starts Pebble on free loopback ports. It stops when the test ends. */
export async function pebble(t: Pick<TestContext, 'after'>, options: PebbleOptions = {}): Promise<Pebble> {
  const program = installedPebble();
  assert(program, 'pebble is not installed: the test lacks needsPebble()');
  const { dnsServer = `127.0.0.1:${deadPort}`, strict = true } = options;
  let caFile = '';
  let caPem = '';
  const { ports, pid, log } = await startOnFreePorts(t, 2, async (ports, dir) => {
    ({ caFile, caPem } = await writeHttpsFiles(dir));
    const config = writeConfiguration(dir, program, ports, options);
    return {
      program: program.path,
      args: ['-config', config, '-dnsserver', dnsServer, ...(strict ? ['-strict'] : [])],
      environment: environment(options),
      isReady: async () =>
        (await answers(`https://127.0.0.1:${ports[0]}/dir`, caPem)) &&
        (await answers(`https://127.0.0.1:${ports[1]}/roots/0`, caPem)),
    };
  });
  const managementUrl = `https://127.0.0.1:${ports[1]}`;
  return {
    directoryUrl: `https://127.0.0.1:${ports[0]}/dir`,
    managementUrl,
    caFile,
    caPem,
    version: program.version,
    has: (feature) => program.features.has(feature),
    setRenewalInfo: async (certificatePem, window) => {
      const body = JSON.stringify({ Certificate: certificatePem, ARIResponse: renewalInfo(window) });
      await send(`${managementUrl}/set-renewal-info/`, caPem, body);
    },
    root: (n = 0) => send(`${managementUrl}/roots/${n}`, caPem),
    pid,
    log,
  };
}

/** The whole environment, so that no variable is inherited. */
function environment(options: PebbleOptions): Record<string, string> {
  const { nonceReject = 20, alternateRoots = 0, authzReuse = 50, alwaysValid = false } = options;
  return {
    PEBBLE_VA_NOSLEEP: '1',
    PEBBLE_VA_ALWAYS_VALID: alwaysValid ? '1' : '0',
    PEBBLE_WFE_NONCEREJECT: String(nonceReject),
    PEBBLE_ALTERNATE_ROOTS: String(alternateRoots),
    PEBBLE_AUTHZREUSE: String(authzReuse),
    PEBBLE_CHAIN_LENGTH: '1',
    PEBBLE_WFE_ORDERS_PER_PAGE: '3',
  };
}

function renewalInfo(window: RenewalWindow | string | null): string {
  if (window === null) return '';
  if (typeof window === 'string') return window;
  const { start, end, explanationURL } = window;
  return JSON.stringify({ suggestedWindow: { start, end }, ...(explanationURL && { explanationURL }) });
}

async function answers(url: string, ca: string): Promise<boolean> {
  try {
    await send(url, ca);
    return true;
  } catch {
    // Nothing listens yet, or another program does.
    return false;
  }
}

/** Sends GET or, with a body, POST. Returns the response body. Throws unless the status is 200. */
async function send(url: string, ca: string, body?: string): Promise<string> {
  const method = body === undefined ? 'GET' : 'POST';
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const headers = { 'User-Agent': 'certificate-vault-tests' };
  const signal = AbortSignal.timeout(5000);
  request(url, { method, ca, headers, agent: false, signal }, resolve).on('error', reject).end(body);
  const response = await promise;
  const answer = await text(response);
  if (response.statusCode !== 200) throw new Error(`${method} ${url}: ${response.statusCode} ${answer}`);
  return answer;
}
