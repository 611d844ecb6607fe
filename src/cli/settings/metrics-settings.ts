/** The settings of metrics: where they are served, and with which token. Off by default. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isLabelKey } from '../../base/object-label.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { refuseExposedKeyFile } from '../terminal/private-files.ts';
import { type Found, type ListenAddress, listenAddress } from './setting-values.ts';

export const metricsOptions = {
  'metrics-listen': {
    type: 'string',
    valueHint: 'HOST:PORT',
    description: 'serve /metrics for Prometheus on this address, such as 127.0.0.1:9464 (default: off)',
  },
  'metrics-token-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'serve /metrics on the main address, too, with the bearer token in this file',
  },
  'metrics-label': {
    type: 'string',
    valueHint: 'KEY',
    description:
      'label metrics of certificates with the value of this label, such as team: label_team="web" (default: none)',
  },
} as const;

/** Listener and token file are undefined if metrics are off. */
export type MetricsSettings = {
  readonly metricsListen: ListenAddress | undefined;
  readonly metricsTokenFile: string | undefined;
  /** The key of the label whose value metrics of certificates have; undefined for none. */
  readonly metricsLabel: string | undefined;
};

/** Throws OperatorError that names the invalid setting. */
export function metricsSettings(
  setting: (name: keyof typeof metricsOptions) => Found | undefined,
): MetricsSettings {
  const listen = setting('metrics-listen');
  const tokenFile = setting('metrics-token-file');
  const label = setting('metrics-label');
  if (label !== undefined && !isLabelKey(label.value)) {
    throw new OperatorError(`${label.from}: "${label.value}" is not the key of a label`, {
      hint: 'Write the part of a label before "=", such as team.',
    });
  }
  return {
    metricsListen: listen && listenAddress(listen),
    metricsTokenFile: tokenFile && resolve(tokenFile.value),
    metricsLabel: label?.value,
  };
}

const shortest = 16;

/** The token in the file. Throws OperatorError if other users can read the file, or it holds no valid token. */
export function readMetricsToken(path: string): Secret {
  refuseExposedKeyFile(path);
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new OperatorError(`--metrics-token-file: cannot read ${path}: ${describeSystemError(error)}`, {
      hint: 'Check the file name and its permissions.',
      cause: error,
    });
  }
  if (text.length >= shortest && /^[A-Za-z0-9._~+/-]+=*$/.test(text)) return new Secret(Buffer.from(text));
  throw new OperatorError(`--metrics-token-file: ${path} holds no valid token`, {
    hint: `Use a token of at least ${shortest} letters and digits.\n  Fix: openssl rand -hex 32 >${path}`,
  });
}
