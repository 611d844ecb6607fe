/** Reads the settings of channels and deploy targets: YAML, JSON, or a single line with only the secret. */

import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import type { ChannelType } from '../../channels/channel.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import {
  readProviderConfig,
  readSecretMapping,
  type SecretFileType,
} from '../../dns/providers/provider-types.ts';

/** Checked settings, and the secret if the vault generated it. */
export type ReadSettings = { readonly config: unknown; readonly generated: Secret<string> | undefined };

/**
 * Checks the settings against the schema of the channel type. `fallbackSecret` is used by a webhook without a secret.
 * Throws OperatorError that names the missing, wrong or unknown setting and never contains a value.
 */
export async function readChannelSettings(
  type: ChannelType,
  settings: Secret,
  fallbackSecret: Secret<string> | undefined,
): Promise<ReadSettings> {
  return forOperators(async () => {
    const given = await mapping(type, settings);
    const generated = given.secret === undefined ? fallbackSecret : undefined;
    const whole = generated === undefined ? given : { ...given, secret: generated.expose() };
    return { config: await readProviderConfig(type, JSON.stringify(whole)), generated };
  });
}

/** Checks settings against the schema of their type. Throws OperatorError like `readChannelSettings`. */
export async function readSettings(type: SecretFileType, settings: Secret): Promise<unknown> {
  return forOperators(() => readProviderConfig(type, settings.expose().toString('utf8')));
}

/** The settings of a secret file, overridden by those given as options. Throws OperatorError. */
export async function mergedSettings(
  type: Pick<ChannelType, 'type' | 'plain'>,
  file: Secret,
  options: Readonly<Record<string, unknown>>,
): Promise<Secret> {
  const given = await forOperators(() => mapping(type, file));
  return new Secret(Buffer.from(JSON.stringify({ ...given, ...options })));
}

function mapping(type: Pick<ChannelType, 'type' | 'plain'>, text: Secret) {
  return readSecretMapping(type, text.expose().toString('utf8'));
}

/** Channels share the secret file reader of DNS providers, whose errors become OperatorErrors here. */
async function forOperators<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DnsProviderError)) throw error;
    const errors = error.settings.map(({ path, message }) => ({
      path: path === '' ? 'settings' : `settings.${path}`,
      message,
    }));
    throw new OperatorError(error.message, { errors, cause: error });
  }
}
