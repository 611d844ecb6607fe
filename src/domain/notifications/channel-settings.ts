/** The settings of a notification channel as people write them: YAML or JSON, or a secret alone in one line. */

import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import type { ChannelType } from '../../channels/channel.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { readProviderConfig, readSecretMapping } from '../../dns/providers/provider-types.ts';

/** Settings that were checked, with the key that was made where there was none. */
export type ReadSettings = { readonly config: unknown; readonly made: Secret<string> | undefined };

/**
 * Checks what is written against what the type needs. `spare` is the secret of a webhook that brings none. Throws
 * OperatorError that names what is missing, wrong or unknown, and never shows a value.
 */
export async function readChannelSettings(
  type: ChannelType,
  settings: Secret,
  spare: Secret<string> | undefined,
): Promise<ReadSettings> {
  return forOperators(async () => {
    const said = await mapping(type, settings);
    const made = said.secret === undefined ? spare : undefined;
    const whole = made === undefined ? said : { ...said, secret: made.expose() };
    return { config: await readProviderConfig(type, JSON.stringify(whole)), made };
  });
}

/** The settings of a secret file with those that were given in the open, which beat it. Throws OperatorError. */
export async function mergedSettings(
  type: Pick<ChannelType, 'type' | 'plain'>,
  file: Secret,
  open: Readonly<Record<string, unknown>>,
): Promise<Secret> {
  const said = await forOperators(() => mapping(type, file));
  return new Secret(Buffer.from(JSON.stringify({ ...said, ...open })));
}

function mapping(type: Pick<ChannelType, 'type' | 'plain'>, text: Secret) {
  return readSecretMapping(type, text.expose().toString('utf8'));
}

/** Secret files are read as those of DNS providers are; what is wrong with them has nothing to do with DNS. */
async function forOperators<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DnsProviderError)) throw error;
    throw new OperatorError(error.message, { cause: error });
  }
}
