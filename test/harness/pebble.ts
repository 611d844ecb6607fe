/**
 * Pebble, the ACME server for tests of Let's Encrypt: a real one on loopback ports, which asks names of nobody but
 * the given DNS server. Tests that use this need `needsPebble()`, and with `needsPebble('ari')` one that knows ARI.
 */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { needs, type Skip } from './missing-program.ts';
import {
  deadPort,
  type Feature,
  goFolders,
  installedPebble,
  type PebbleConfiguration,
  writeConfiguration,
  writeHttpsFiles,
} from './pebble-files.ts';
import { type StartedServer, startOnFreePorts } from './port.ts';

export type PebbleOptions = PebbleConfiguration & {
  /** The percentage of good nonces that it rejects: 20 without it. */
  readonly nonceReject?: number;
  /** How many chains it offers besides the usual one: none without it. */
  readonly alternateRoots?: number;
  /** The percentage of valid authorizations that a new order takes over: Pebble's own 50 without it. */
  readonly authzReuse?: number;
  /** Whether it refuses what will be wrong one day: yes without it. */
  readonly strict?: boolean;
  /** `127.0.0.1:PORT`, as `bind()` gives it. Without it no name can be looked up. */
  readonly dnsServer?: string;
  /** Whether every challenge that is answered is taken for fulfilled, and nothing looked at: no without it. */
  readonly alwaysValid?: boolean;
};

export type Pebble = Omit<StartedServer, 'ports'> & {
  /** `https://127.0.0.1:PORT/dir` */
  readonly directoryUrl: string;
  /** `https://127.0.0.1:PORT`, with a certificate of the same CA */
  readonly managementUrl: string;
  /** The root of its HTTPS certificate: not the root of what it issues, which is `root()`. */
  readonly caFile: string;
  readonly caPem: string;
  readonly version: string;
  readonly has: (feature: Feature) => boolean;
  /**
   * What it suggests about the renewal of a certificate of its own, the first of the PEM, from now on; null gives back
   * its own idea. A string is the answer's body as it is, which may be broken.
   */
  readonly setRenewalInfo: (certificatePem: string, window: RenewalWindow | string | null) => Promise<void>;
  /** The root of the usual chain (0) or of an alternate one, as PEM. */
  readonly root: (n?: number) => Promise<string>;
};

export type RenewalWindow = { readonly start: Date; readonly end: Date; readonly explanationURL?: string };

/**
 * Options for a test that needs `pebble()`: see `needs()`. Where the installed one is too old for the feature, the test
 * is skipped in any case.
 */
export function needsPebble(feature?: Feature): Skip {
  const program = installedPebble();
  if (!program) return needs('pebble', goFolders);
  if (feature === undefined || program.features.has(feature)) return {};
  return { skip: `Pebble ${program.version} (${program.path}) has no ${feature}` };
}

/** Starts one on free loopback ports and stops it when the test has ended. */
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

/** Everything that it reads, so that nothing of it comes from outside. */
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
    // Nobody listens yet, or somebody else.
    return false;
  }
}

/** The body of the answer to GET or, with a body, to POST. Throws where the answer is not 200. */
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
