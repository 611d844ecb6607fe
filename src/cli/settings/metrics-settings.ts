/** The settings of metrics: where they are served, and who may read them. Without them there are none. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import { refuseExposedKeyFile } from '../terminal/private-files.ts';
import { type Found, type ListenAddress, listenAddress } from './setting-values.ts';

export const metricsOptions = {
  'metrics-listen': {
    type: 'string',
    valueHint: 'HOST:PORT',
    description: 'where to serve /metrics for Prometheus, such as 127.0.0.1:9464 (default: nowhere)',
  },
  'metrics-token-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'serve /metrics on the main address too, to whoever has the bearer token in this file',
  },
} as const;

/** Both undefined where no metrics were asked for. */
export type MetricsSettings = {
  readonly metricsListen: ListenAddress | undefined;
  readonly metricsTokenFile: string | undefined;
};

/** Throws OperatorError that names the setting that is wrong. */
export function metricsSettings(
  setting: (name: keyof typeof metricsOptions) => Found | undefined,
): MetricsSettings {
  const listen = setting('metrics-listen');
  const tokenFile = setting('metrics-token-file');
  return {
    metricsListen: listen && listenAddress(listen),
    metricsTokenFile: tokenFile && resolve(tokenFile.value),
  };
}

const shortest = 16;

/** The token in the file. Throws OperatorError where others can read it, or it is none. */
export function readMetricsToken(path: string): Secret {
  refuseExposedKeyFile(path);
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new OperatorError(`the token for metrics ${path} cannot be read: ${(error as Error).message}`, {
      hint: 'Name a readable file with --metrics-token-file.',
      cause: error,
    });
  }
  if (text.length >= shortest && /^[A-Za-z0-9._~+/-]+=*$/.test(text)) return new Secret(Buffer.from(text));
  throw new OperatorError(`${path} holds no token for metrics`, {
    hint: `Write one of ${shortest} or more letters and digits: openssl rand -hex 32 >${path}`,
  });
}
