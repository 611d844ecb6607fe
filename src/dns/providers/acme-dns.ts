/**
 * Provider `acme-dns`: a server (github.com/joohoi/acme-dns) with one record per account. `_acme-challenge.DOMAIN` is a
 * CNAME to that record, so these credentials cannot change anything else.
 */
import { z } from 'zod';
import { Secret } from '../../base/secret.ts';
import { DnsProviderError, type DnsProviderType } from '../dns-provider.ts';
import { plainName } from '../resolver/dns-name.ts';
import { apiUrl, credential } from './api-settings.ts';
import { jsonApi } from './json-api.ts';

const config = z.strictObject({
  url: apiUrl,
  username: credential('the username of the registration'),
  password: credential('the password of the registration'),
  subdomain: credential('the subdomain of the registration'),
  fulldomain: credential('the fulldomain of the registration').optional(),
});

/** The response of `POST /register`. The zone of the provider is the fulldomain. */
export type AcmeDnsConfig = z.output<typeof config>;

const confirmation = z.object({ txt: z.string() });

/**
 * The server keeps the last two values and drops older ones. So two concurrent validations can coexist, and `remove`
 * does nothing, because the API has no such request.
 */
export const acmeDns: DnsProviderType<AcmeDnsConfig> = {
  type: 'acme-dns',
  title: 'acme-dns, through a CNAME to its fulldomain',
  config,
  create: ({ url, username, password, subdomain, fulldomain }, context) => {
    const title = `acme-dns at ${new URL(url).host}`;
    const api = jsonApi({
      context,
      title,
      baseUrl: url,
      permission:
        'Check that username and password are those of the registration and that the registration allows this address.',
      secrets: [new Secret(password), new Secret(username)],
      authorize: () => ({ 'X-Api-User': username, 'X-Api-Key': password }),
    });
    return {
      present: async ({ name, value, domain }, signal) => {
        if (fulldomain !== undefined && plainName(fulldomain) !== name) {
          throw new DnsProviderError(
            `acme-dns serves only ${plainName(fulldomain)}, not ${name}: create a CNAME from _acme-challenge.${domain} to ${plainName(fulldomain)}`,
          );
        }
        const purpose = `set the TXT record ${name}`;
        const json = { subdomain, txt: value };
        const answer = await api.send({ method: 'POST', path: '/update', purpose, json }, signal);
        if (api.read(confirmation, answer).txt !== value) {
          throw new DnsProviderError(`${title} failed to ${purpose}: it confirmed another value`);
        }
      },
      remove: async () => {
        // See above.
      },
    };
  },
};
